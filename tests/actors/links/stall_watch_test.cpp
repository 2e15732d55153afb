#include "actors/links/stall_watch.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace std::chrono_literals;

namespace {
constexpr auto at(int seconds) {
  return stall_watch::time_point(std::chrono::seconds(seconds));
}
}  // namespace

TEST_CASE("stall_watch: a peer that takes nothing is stalled at the limit, and not before") {
  stall_watch w(10s);
  w.offered(at(100));
  CHECK_FALSE(w.after_write(at(100), 0));
  CHECK_FALSE(w.after_write(at(109), 0));
  CHECK(w.after_write(at(110), 0) == 10s);
  CHECK(w.after_write(at(112), 0) == 12s);
}

TEST_CASE("stall_watch: a peer that takes a byte now and then is never stalled") {
  stall_watch w(10s);
  w.offered(at(0));
  for (int t = 9; t < 900; t += 9) CHECK_FALSE(w.after_write(at(t), 1));
  CHECK_FALSE(w.after_write(at(900), 0));  // the last byte went at 891
  CHECK(w.after_write(at(901), 0) == 10s);
}

TEST_CASE("stall_watch: time in which nothing waited does not count") {
  stall_watch w(10s);
  w.offered(at(0));
  CHECK_FALSE(w.after_write(at(1), 100));
  w.offered(at(1000));
  CHECK_FALSE(w.after_write(at(1005), 0));
}
