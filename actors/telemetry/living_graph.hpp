// actors/telemetry/living_graph.hpp - the actors of one worker as they are at this moment, with what the plan says of them.
#pragma once
#include "actors/telemetry/cluster_view.hpp"

#include <cstddef>
#include <vector>

namespace poseidon {

/// Actors that have ended are left out, with their edges. An edge has carried a message, or is planned between living
/// actors. An actor or edge that is not in the plan is control.
struct living_graph {
  actor_graph graph;                ///< ids are places in its own lists
  std::vector<std::size_t> actors;  ///< by id: the place among the worker's actors
  std::vector<long> edges;          ///< by id: the place among the worker's edges; -1: only planned
};
/// Empty for a worker without a report.
[[nodiscard]] living_graph living_graph_of(const cluster_view::state& s, std::uint32_t worker);

}  // namespace poseidon
