#include "models/printable.hpp"

#include "models/json.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace poseidon;

TEST_CASE("printable: UTF-8 stays, control characters and other bytes are written out") {
  CHECK(escaped("a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82") ==
        "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82");
  CHECK(escaped("\x1b[31m\n\x7f\xff") == "\\x1b[31m\\x0a\\x7f\\xff");
  CHECK(escaped("a\nb\x1b", "\n") == "a\nb\\x1b");
  // The control sequence introducer of C1.
  CHECK(escaped("\xc2\x9b[m") == "\\xc2\\x9b[m");
  CHECK(escaped("") == "");
  CHECK(key_text("00000001_cat.jpg") == "00000001_cat.jpg");
  CHECK(key_text(std::string("\xff\0\x1b", 3)) == "0xff001b");
}

TEST_CASE("printable: what is no UTF-8 is found: cut, too long, surrogates, above U+10FFFF") {
  for (const char* bad : {"\x80", "\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf",
                          "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff", "\xfe"})
    CHECK_MESSAGE(utf8_character(bad, 0) == 0, escaped(bad));
  for (const char* good : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(utf8_character(good, 0) == std::string(good).size());
}

TEST_CASE("printable: JSON's text is UTF-8 without control characters, whatever the bytes") {
  CHECK(json_text("a\xff"
                  "b\xc3\xa9\x1b\xc3") == "\"a\\ufffdb\xc3\xa9\\u001b\\ufffd\"");
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (auto& b : bytes)
      b = static_cast<char>(random() % 3 == 0 ? random() : 0x80 + random() % 0x80);
    const auto json = json_text(bytes);
    for (std::size_t at = 0; at < json.size();) {
      const auto n = utf8_character(json, at);
      REQUIRE(n > 0);
      REQUIRE(static_cast<unsigned char>(json[at]) >= 0x20);
      at += n;
    }
    REQUIRE(is_printable(escaped(bytes)));
    REQUIRE(is_printable(key_text(bytes)));
  }
}
