#include "apps/terminal/pace.hpp"

#include <doctest/doctest.h>

using poseidon::app::pace;
using namespace std::chrono_literals;

namespace {
const pace::time_point begin{};
pace::time_point at(double seconds) {
  return begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                     std::chrono::duration<double>(seconds));
}
}  // namespace

TEST_CASE("pace: a resumed run's iterations before it count for nothing") {
  pace p;
  CHECK_FALSE(p.begun());
  CHECK_FALSE(p.per_s());
  p.at(9000, at(0));
  CHECK_FALSE(p.left_s(10000, at(0)));
  p.at(9010, at(1));
  CHECK(*p.per_s() == doctest::Approx(10));
  CHECK(*p.left_s(10000, at(1)) == doctest::Approx(99));
}

TEST_CASE("pace: the time left follows a run that has become slower") {
  pace p(10s);
  double now = 0, done = 0;
  for (; now < 100; now += 1) p.at(done += 10, at(now));
  CHECK(*p.per_s() == doctest::Approx(10));
  for (; now < 120; now += 1) p.at(done += 1, at(now));
  CHECK(*p.per_s() == doctest::Approx(1));
  CHECK(*p.left_s(done + 60, at(now - 1)) == doctest::Approx(60));
}

TEST_CASE(
    "pace: the time left goes down between iterations, and stands still with a run that does") {
  pace p;
  p.at(0, at(0));
  p.at(1, at(10));
  CHECK(*p.left_s(11, at(10)) == doctest::Approx(100));
  CHECK(*p.left_s(11, at(14)) == doctest::Approx(96));
  CHECK(*p.left_s(11, at(20)) == doctest::Approx(90));
  CHECK(*p.left_s(11, at(500)) == doctest::Approx(90));
  CHECK(p.silent_s(at(500)) == doctest::Approx(490));
  CHECK(p.usual_s() == doctest::Approx(10));
}

TEST_CASE("pace: many iterations a second and a few an hour are both kept") {
  pace fast;
  for (int i = 0; i <= 100000; ++i) fast.at(i, at(i * 1e-3));
  CHECK(*fast.per_s() == doctest::Approx(1000).epsilon(0.01));
  CHECK(fast.silent_s(at(100)) == doctest::Approx(0));
  pace slow;
  for (int i = 0; i < 5; ++i) slow.at(i, at(i * 600));
  CHECK(*slow.per_s() == doctest::Approx(1 / 600.0));
}

TEST_CASE("pace: what was done meanwhile does not make it slow") {
  pace p;
  p.at(0, at(0));
  p.at(10, at(1));
  p.stood_aside(at(1), at(31));  // a test phase
  CHECK(p.silent_s(at(31)) == doctest::Approx(0));
  p.at(20, at(32));
  CHECK(*p.per_s() == doctest::Approx(10));

  SUBCASE("a reading within that time stays before the next one") {
    p.at(21, at(35));
    p.stood_aside(at(32.5), at(40));
    p.at(22, at(40.1));
    REQUIRE(p.per_s());
    CHECK(*p.per_s() > 5);
    CHECK(p.silent_s(at(40.1)) == doctest::Approx(0));
  }
}

TEST_CASE("pace: two readings at one time give no rate") {
  pace p;
  p.at(0, at(0));
  p.at(5, at(0));
  CHECK_FALSE(p.per_s());
  CHECK_FALSE(p.left_s(10, at(1)));
}
