// actors/telemetry/living_graph.hpp - the actors of one worker as they are at this moment, with what the plan says of them.
#pragma once
#include "actors/telemetry/cluster_view.hpp"

#include <cstddef>
#include <vector>

namespace poseidon {

/// Actors that have ended are left out, with their edges. Edges are those that something has flown along, and those
/// between living actors that are only planned. An actor or edge that the plan does not know is control.
struct living_graph {
  actor_graph graph;                ///< ids are places in its own lists
  std::vector<std::size_t> actors;  ///< by id: the place among the worker's actors
  std::vector<long> edges;          ///< by id: the place among the worker's edges; -1: only planned
};
/// Empty for a worker that nobody has heard of.
[[nodiscard]] living_graph living_graph_of(const cluster_view::state& s, std::uint32_t worker);

}  // namespace poseidon
