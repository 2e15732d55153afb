#include "models/fingerprint.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace poseidon;

TEST_CASE("fingerprint: what a node tells, another one reads") {
  const fingerprint told{{"device", "CPU"}, {"instructions", "AVX512_CORE", "AVX-512"}, {"", ""}};
  CHECK(decode_fingerprint(encode(told)) == told);
  CHECK(encode({}).empty());
  CHECK(decode_fingerprint("").empty());
}

TEST_CASE("fingerprint: no text of a program breaks out of its line") {
  const auto read = decode_fingerprint(encode({{"a\tb", "1\n2", "\x1b[31m"}, {"c", "3"}}));
  REQUIRE(read.size() == 2);
  CHECK(read[0] == trait{"a?b", "1?2", "?[31m"});
  CHECK(read[1] == trait{"c", "3"});
}

TEST_CASE("fingerprint: one that is too long is sent as a checksum, and two of them still differ") {
  const fingerprint one{{"PyTorch", std::string(2000, 'x')}};
  fingerprint other = one;
  other[0].value.back() = 'y';
  CHECK(encode(one).size() <= max_fingerprint_bytes);
  CHECK(encode(one) != encode(other));
  CHECK(encode(one) == encode(fingerprint(one)));
}

TEST_CASE("fingerprint: any bytes are read") {
  std::mt19937 dice(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text(dice() % 64, ' ');
    for (char& c : text) c = static_cast<char>("\t\nab\xff"[dice() % 5]);
    for (const auto& t : decode_fingerprint(text))
      CHECK((t.name + t.value + t.shown).find_first_of("\t\n") == std::string::npos);
  }
}
