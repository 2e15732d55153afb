#include "models/words.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("edit_distance: two letters in the wrong order are one edit, and case is none") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("Convolutoin", "Convolution") == 1);
  CHECK(edit_distance("convolution", "CONVOLUTION") == 0);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest_word: a word that shares nothing gets no suggestion") {
  const std::vector<std::string> known{"conv1", "conv2", "pool1"};
  CHECK(nearest_word("conv3", known) == "conv1");
  CHECK(nearest_word("pol1", known) == "pool1");
  CHECK_FALSE(nearest_word("probability", known).has_value());
  CHECK_FALSE(nearest_word("x", {"y"}).has_value());
  CHECK_FALSE(nearest_word("x", {}).has_value());
}

TEST_CASE("seconds_text: one digit behind the point, rounded") {
  using namespace std::chrono_literals;
  CHECK(seconds_text(2500ms) == "2.5 s");
  CHECK(seconds_text(0s) == "0.0 s");
  CHECK(seconds_text(59960ms) == "60.0 s");
}

TEST_CASE("plain_number: a float prints as it was written") {
  CHECK(plain_number(0.1f) == "0.1");
  CHECK(plain_number(1e-5f) == "1e-05");
  CHECK(plain_number(2) == "2");
}
