#include "actors/training/clock_plan.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using step = clock_plan::step;

TEST_CASE("clock_plan: clocks are trained up to the end") {
  clock_plan p(12);
  p.begin(10);
  CHECK(p.next() == step::train);
  p.advance();
  CHECK(p.next() == step::train);
  p.advance();
  CHECK(p.next() == step::end);
}

TEST_CASE("clock_plan: a held clock waits for the clock of the pause, which may be a later one") {
  clock_plan p(100);
  p.begin(5);
  CHECK(p.hold(true) == 6);
  p.advance();
  CHECK(p.next() == step::hold);
  p.pause_at(7);
  CHECK(p.next() == step::train);
  p.advance();
  CHECK(p.next() == step::pause);
  CHECK(p.soonest_end(false) == 7);
  p.resume();
  CHECK(p.next() == step::train);
  CHECK(p.soonest_end(false) == 8);  // solver state has arrived when the next version exists
}

TEST_CASE("clock_plan: a pause that was agreed for a later clock survives the one before") {
  clock_plan p(100);
  p.begin(4);
  p.pause_at(4);
  p.pause_at(6);
  p.resume();
  p.advance();
  p.advance();
  CHECK(p.next() == step::pause);
}

TEST_CASE(
    "clock_plan: an early end is never later than the run's, and takes back a node that is ahead") {
  clock_plan p(10);
  p.begin(0);
  CHECK(p.soonest_end(true) == 1);
  p.end_at(18446744073709551615u);
  CHECK(p.end() == 10);
  CHECK(p.ends_early());
  for (int i = 0; i < 5; ++i) p.advance();
  p.end_at(3);
  p.leave_what_is_beyond();
  CHECK(p.clock() == 3);
  CHECK(p.next() == step::end);
}
