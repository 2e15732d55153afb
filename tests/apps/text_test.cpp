#include "apps/terminal/text.hpp"

#include "apps/terminal/figures.hpp"

#include <doctest/doctest.h>

using namespace poseidon::app;

TEST_CASE("text: what a terminal would obey, and what is no UTF-8, is a question mark there") {
  CHECK(printable("loss\033[2J\r\a") == "loss?[2J??");
  CHECK(printable("a\tb\nc") == "a\tb\nc");
  CHECK(printable("g\xc3\xbcltig") == "g\xc3\xbcltig");
  CHECK(printable("a\xff z\xc3") == "a? z?");
  CHECK(printable("\xc2\x9b") == "?");        // CSI as one character
  CHECK(printable("\xc0\x9b") == "??");       // overlong
  CHECK(printable("\xed\xa0\x80") == "???");  // a surrogate
  CHECK(valid_utf8("a\xff z\xc3") == "a\xef\xbf\xbd z\xef\xbf\xbd");
}

TEST_CASE("text: columns are those of a terminal, not bytes") {
  CHECK(columns_of("") == 0);
  CHECK(columns_of("accuracy") == 8);
  CHECK(columns_of("g\xc3\xbcltig") == 6);
  CHECK(columns_of("\xe6\x90\x8d\xe5\xa4\xb1") == 4);  // two of CJK
  CHECK(columns_of("e\xcc\x81") == 1);                 // with a combining accent
}

TEST_CASE("text: what is cut never takes more columns than there are, and no half characters") {
  const std::string cjk = "\xe6\x90\x8d\xe5\xa4\xb1";
  CHECK(cut("accuracy", 3) == "acc");
  CHECK(cut(cjk, 3) == "\xe6\x90\x8d");
  CHECK(cut(cjk, 1).empty());
  CHECK(cut("x", 0).empty());
  const styled_line line = {{"ab", style::plain}, {"cdef", style::bar}, {"g", style::plain}};
  const auto some = cut(line, 4);
  REQUIRE(some.size() == 2);
  CHECK(some[1].text == "cd");
  CHECK(some[1].style == style::bar);
  CHECK(columns_of(cut(line, 100)) == 7);
}

TEST_CASE("text: of a name that is too wide begin and end stay") {
  CHECK(shortened("opening data/train_lmdb", 23) == "opening data/train_lmdb");
  CHECK(shortened("opening data/train_lmdb", 12) == "openi.._lmdb");
  CHECK(shortened("opening", 3) == "ope");
  for (std::size_t columns = 0; columns < 14; ++columns)
    CHECK(columns_of(
              shortened("\xe6\x90\x8d\xe5\xa4\xb1\xe6\x90\x8d\xe5\xa4\xb1\xe6\x90\x8d\xe5\xa4\xb1",
                        columns)) <= columns);
}

TEST_CASE("text: SGR sequences come with colour alone, and end where they began") {
  const styled_line line = {{"| ", style::plain}, {"##", style::bar}, {"!", style::warning}};
  CHECK(sent(line, false) == "| ##!");
  CHECK(sent(line, true) == "| \033[36m##\033[0m\033[33m!\033[0m");
}

TEST_CASE("figures: as people read them") {
  CHECK(duration(0) == "0s");
  CHECK(duration(59.6) == "1m00s");
  CHECK(duration(1625) == "27m05s");
  CHECK(duration(3 * 3600 + 125) == "3h02m");
  CHECK(duration(1e300) == "ages");
  CHECK(rate(4813.4) == "4813");
  CHECK(rate(12.53) == "12.5");
  CHECK(byte_rates(248.4e6, 24.4e6) == "248/24.4 MB/s");
  CHECK(byte_rates(900, 100) == "0.9/0.1 kB/s");
  CHECK(byte_rates(0, 2.5e9) == "0/2.5 GB/s");
  CHECK(byte_rates(1.06e9, 13e3) == "1.06/0 GB/s");
  CHECK(byte_rates(1.06e9, 13e6) == "1.06/0.013 GB/s");
  CHECK(bytes_of(1'234'000'000, 4'800'000'000) == "1.2 of 4.8 GB");
  CHECK(sent(bar(0.5, 12), false) == "|#####     |");
  CHECK(sent(bar(2, 5), false) == "|###|");
  CHECK(sent(bar(-1, 0), false) == "| |");
}
