// apps/web/lag.hpp - what status, page and recorded runs call a worker's lag.
#pragma once
#include "actors/telemetry/cluster_view.hpp"

#include <algorithm>
#include <cstdint>

namespace poseidon {

/// How many iterations old the parameters are that the first worker computes with, because this one is behind: 0 in exact runs, and
/// never more than the staleness. What reports say is less exact, because each node's clock is only estimated: where iterations take
/// microseconds, workers seem many of them apart. When a run has ended nobody is behind: who reported last was not ahead.
[[nodiscard]] inline std::uint64_t shown_lag(const cluster_view::state& s, std::uint32_t worker,
                                             std::int64_t now) {
  if (s.ended() || !s.facts) return 0;
  // Who begins an iteration is one ahead of those that exchange the one before.
  const auto begun = lag_of(s.workers, worker, now);
  return std::min(begun - std::min<std::uint64_t>(begun, 1), s.facts->staleness);
}

/// The first iteration of a worker's newest clock.
[[nodiscard]] inline std::uint64_t shown_clock(const cluster_view::state& s, const worker_view& w) {
  return w.pace.clock * (s.facts ? s.facts->iterations_per_clock : 1);
}

}  // namespace poseidon
