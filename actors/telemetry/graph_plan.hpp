// actors/telemetry/graph_plan.hpp
//
// The actors that a node will run for a net and what will flow between them, planned from the resolved net and the
// partition alone, so that they can be drawn before anything runs; tests/cluster/graph_test.py compares the plan with
// what then runs.
#pragma once
#include "actors/telemetry/actor_graph.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <cstddef>
#include <span>

namespace poseidon {

struct cluster_size {
  std::size_t nodes = 1;
  std::size_t replicas = 1;  ///< per node
  std::size_t worker = 0;    ///< the node that is drawn; the protocol_selector lives on worker 0
};

/// The actors that one node of the cluster runs. `p` must be the partition of `train` over
/// size.nodes. Layers of test nets are included when the nets are given, each named "test layer
/// conv1 [0]".
[[nodiscard]] actor_graph plan_graph(const net& train, const partition& p, cluster_size size,
                                     std::span<const net> test_nets = {});

}  // namespace poseidon
