#include "apps/web/lag.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

namespace {

/// Worker 1 began its newest iteration so many before worker 0.
cluster_view::state apart(std::uint64_t iterations, std::uint64_t staleness) {
  cluster_view::state s;
  s.facts.emplace();
  s.facts->staleness = staleness;
  for (std::uint32_t id = 0; id < 2; ++id) {
    s.workers[id].pace.clocks.emplace_back(1, id == 0 ? 100 : 100 - iterations);
    s.workers[id].contact.known_ns = 2;
  }
  return s;
}

}  // namespace

TEST_CASE("lag: in an exact run it is 0, with staleness never more than that") {
  for (std::uint64_t begun = 0; begun < 12; ++begun)
    for (std::uint64_t staleness = 0; staleness < 6; ++staleness) {
      const auto s = apart(begun, staleness);
      const auto old = begun == 0 ? 0 : begun - 1;
      CHECK(shown_lag(s, 1, 3) == std::min(old, staleness));
      CHECK(shown_lag(s, 0, 3) == 0);
    }
}

TEST_CASE("lag: when a run has ended nobody is behind") {
  auto s = apart(95, 3);
  s.stage = node_stage::ended;
  CHECK(shown_lag(s, 1, 1'000'000'000'000) == 0);
}
