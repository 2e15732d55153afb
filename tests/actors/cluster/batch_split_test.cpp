#include "actors/cluster/batch_split.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("batch_split: what nodes answer stands by seat, in whatever order they answer") {
  batch_split s;
  CHECK(s.timed(seat_id{2}, {4, 50}) == 1);
  CHECK(s.timed(seat_id{0}, {1, 100}) == 2);
  CHECK(s.timed(seat_id{2}, {2, 60}) == 2);  // a second answer of a node replaces its first
  CHECK(s.timed(seat_id{1}, {3, 0}) == 3);
  CHECK(s.replicas() == std::vector<std::uint32_t>{1, 3, 2});
  CHECK(s.samples_s() == std::vector<double>{100, 0, 60});
}

TEST_CASE("batch_split: the first node with another number of replicas is named") {
  batch_split s;
  CHECK(!s.other_number(2));
  s.ready(seat_id{1}, 2);
  CHECK(!s.other_number(2));
  s.ready(seat_id{3}, 8);
  s.ready(seat_id{2}, 4);
  const auto other = s.other_number(2);
  REQUIRE(other);
  CHECK(other->first == seat_id{2});
  CHECK(other->second == 4);
}
