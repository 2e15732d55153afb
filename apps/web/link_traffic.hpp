// apps/web/link_traffic.hpp - what a worker's links have carried, and how much of it were probes of their rate.
#pragma once
#include "actors/telemetry/cluster_view.hpp"

#include <cstdint>

namespace poseidon {

struct link_traffic {
  std::uint64_t out = 0, in = 0;                ///< bytes, without probes
  std::uint64_t probes_out = 0, probes_in = 0;  ///< of protocol_selector, before training
};

[[nodiscard]] link_traffic traffic_of(const cluster_view::state& s, std::uint32_t worker);

}  // namespace poseidon
