#include "models/shape.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("shape: a scalar has one value and a name; an axis of 0 has none") {
  CHECK(count(shape{}) == 1);
  CHECK(to_string(shape{}) == "scalar");
  CHECK(count(shape{3, 0, 5}) == 0);
  CHECK(count(shape{64, 1, 28, 28}, 1, 4) == 784);
  CHECK(count(shape{64, 1}, 1, 1) == 1);
  CHECK(to_string(shape{64, 1, 28, 28}) == "64x1x28x28");
}

TEST_CASE("shape: a product that leaves 64 bits is noticed, not wrapped") {
  CHECK(checked_count({3, 5}) == 15);
  CHECK_FALSE(checked_count({std::int64_t{1} << 40, std::int64_t{1} << 40}).has_value());
  CHECK_FALSE(checked_count({-1, 2}).has_value());
}
