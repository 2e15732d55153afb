// apps/graph/plan.hpp - from a file on disk to its planned actor graph, with or without the data.
#pragma once
#include "actors/telemetry/graph_plan.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace poseidon::app {

struct graph_options {
  std::filesystem::path spec;  ///< a solver or a net; which of them is seen from its fields
  std::size_t nodes = 1, replicas = 1, worker = 0;
  std::uint32_t survive = 1;  ///< nodes that keep a copy of each one's solver state
  shape input;  ///< shape of one sample, where the source cannot be opened; empty: none given
  std::filesystem::path data_root;  ///< see source_options
  std::string routes = "ps";        ///< for several nodes, as poseidon-node takes them
};

/// R of "cpu:R"; 1 for "cpu".
[[nodiscard]] std::size_t parse_replicas(const std::string& text);

/// {1, 28, 28} of "1x28x28".
[[nodiscard]] shape parse_shape(const std::string& text);

/// A source that cannot be opened is no error: standard error says for which samples the net is drawn.
/// Errors   spec_error: whatever read_solver and build_net refuse.
[[nodiscard]] actor_graph plan_of(const graph_options& options);

}  // namespace poseidon::app
