#include "actors/training/test_progress.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace poseidon;

TEST_CASE(
    "test_progress: at most two passes of a replica are in flight, and the next waits for the "
    "issue") {
  test_progress phase({5, 1, 0, 1}, 1);
  CHECK(phase.start(0) == 0);
  CHECK_FALSE(phase.start(0));  // not issued yet
  phase.issued(0, 1);
  CHECK(phase.start(0) == 1);
  phase.issued(0, 1);
  CHECK_FALSE(phase.start(0));  // two not computed
  phase.computed(0, 0, {0.5f});
  CHECK(phase.start(0) == 2);
}

TEST_CASE("test_progress: finished when every value of every pass is in, sums kept") {
  test_progress phase({2, 1, 0, 1}, 2);
  for (int pass = 0; pass < 2; ++pass) {
    REQUIRE(phase.start(0));
    phase.issued(0, 1);
    phase.computed(0, 1, {2.0f});
    CHECK_FALSE(phase.finished());
    phase.computed(0, 0, {1.0f});
  }
  CHECK(phase.finished());
  CHECK(phase.sums() == std::vector<double>{2.0, 4.0});
}

TEST_CASE(
    "test_progress: a net that has nothing to print is passed through and divides by nothing") {
  test_progress phase({3, 1, 0, 1}, 0);
  for (int pass = 0; pass < 3; ++pass) {
    CHECK_FALSE(phase.finished());
    REQUIRE(phase.start(0) == pass);
    CHECK_FALSE(phase.start(0));
    phase.issued(0, 1);
  }
  CHECK(phase.finished());
  CHECK(phase.computed() == 3);
}
