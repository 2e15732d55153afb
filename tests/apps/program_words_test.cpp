#include "apps/library/words.hpp"

#include <doctest/doctest.h>

using namespace poseidon::library;

TEST_CASE("words: a program reads of options as it gives them") {
  const std::vector<std::string> options{"join", "listen", "token", "token-file"};
  const auto words = [&](const char* text) { return in_program_words(text, options); };
  CHECK(words("--listen 0.0.0.0:7600 can be reached. Give --token-file FILE.") ==
        "listen=0.0.0.0:7600 can be reached. Give token-file=FILE.");
  CHECK(words("Give every node the same --token-file.") == "Give every node the same token-file=.");
  CHECK(words("--token-file /run/token: empty") == "token-file=/run/token: empty");
  CHECK(words("--token-file=token: empty") == "token-file=token: empty");
  CHECK(words("listen on 127.0.0.1, or --join") == "listen on 127.0.0.1, or join=");
  CHECK(words("--listening and --tokens -- --devices 0") ==
        "--listening and --tokens -- --devices 0");
  CHECK(words("Join it with poseidon-node --join, or with --listen") ==
        "Join it with poseidon-node --join, or with listen=");
}

TEST_CASE("words: what the library says is one line that a terminal may show") {
  CHECK(one_line("two\nlines\tand \x1b[31m red \xff") == "two lines and ?[31m red ?");
  CHECK(in_program_words("a\nb", {}) == "a b");
}

TEST_CASE("words: the byte that makes a name unfit is found") {
  CHECK(first_unfit("layer.0.weight") == std::string::npos);
  CHECK(first_unfit("gewicht\xc3\xa4?") == std::string::npos);
  CHECK(first_unfit("a\nb") == 1);
  CHECK(first_unfit("\x7f") == 0);
  CHECK(first_unfit("ab\xff") == 2);
  CHECK(first_unfit("\xc3\xa4\xc2\x85") == 2);
}
