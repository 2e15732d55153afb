#include "tests/actors/membership/version_floor.hpp"

#include "tests/actors/membership/seats.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using test::seats;

namespace {

version_floor of_three() {
  return {seat_id{4}, seats({1, 4, 7})};
}

}  // namespace

TEST_CASE("version_floor: there is none before every member has told a version") {
  auto f = of_three();
  CHECK(!f.floor());
  CHECK(f.reached(version_id{5}));
  f.told(seat_id{1}, version_id{5});
  CHECK(!f.floor());
  f.told(seat_id{7}, version_id{5});
  CHECK(f.floor() == version_id{5});
}

TEST_CASE("version_floor: it is the slowest member's version, this node's own included") {
  auto f = of_three();
  CHECK(f.reached(version_id{5}));
  f.told(seat_id{1}, version_id{8});
  f.told(seat_id{7}, version_id{6});
  CHECK(f.floor() == version_id{5});
  CHECK(f.reached(version_id{7}));
  CHECK(f.floor() == version_id{6});
  CHECK(f.own() == version_id{7});
  CHECK(f.of(seat_id{1}) == version_id{8});
}

TEST_CASE("version_floor: neither a stranger nor an older word moves it") {
  auto f = of_three();
  CHECK(f.reached(version_id{5}));
  f.told(seat_id{1}, version_id{5});
  f.told(seat_id{2}, version_id{1});
  f.told(seat_id{7}, version_id{5});
  f.told(seat_id{7}, version_id{3});
  CHECK(f.floor() == version_id{5});
  CHECK(!f.of(seat_id{2}));
}

TEST_CASE("version_floor: each version is told once") {
  auto f = of_three();
  CHECK(f.reached(version_id{5}));
  CHECK(!f.reached(version_id{5}));
  CHECK(!f.reached(version_id{4}));
  CHECK(f.reached(version_id{6}));
}

TEST_CASE("version_floor: a frozen node tells of no newer version, and its stand stays") {
  auto f = of_three();
  for (const auto m : {1, 7}) f.told(seat_id{static_cast<std::uint32_t>(m)}, version_id{6});
  CHECK(f.reached(version_id{5}));
  f.freeze();
  CHECK(f.frozen());
  CHECK(!f.reached(version_id{6}));
  CHECK(f.own() == version_id{5});
  CHECK(f.floor() == version_id{5});
}

TEST_CASE("version_floor: what others tell after the freeze does not raise it") {
  auto f = of_three();
  CHECK(f.reached(version_id{6}));
  f.told(seat_id{1}, version_id{5});
  f.told(seat_id{7}, version_id{6});
  f.freeze();
  f.told(seat_id{1}, version_id{6});
  CHECK(f.floor() == version_id{5});
}
