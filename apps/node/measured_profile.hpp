// apps/node/measured_profile.hpp - what `poseidon-node time` has measured, as a profile for --devices replay.
#pragma once
#include "apps/bare/bare_run.hpp"
#include "models/plan/profile.hpp"

#include <cstdint>

namespace poseidon::app {

/// Replicas run in parallel: the times of one replica are the node's times for the whole batch. `wall`: seconds of all iterations, without
/// waits.
[[nodiscard]] profile measured_profile(const bare_run& run, std::uint64_t iterations, double wall);

}  // namespace poseidon::app
