// actors/run_spec.hpp - what is trained, the same on every node, and how this node takes part in it.
#pragma once
#include "models/device.hpp"
#include "models/routes.hpp"
#include "models/snapshot.hpp"
#include "models/solver_file.hpp"
#include "models/wire_format.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace poseidon {

/// Agreed by all nodes; travels in frames::view.
struct run_spec {
  solver_file solver;
  std::uint64_t seed = 1;
  std::uint64_t first_clock = 0;
  data_position data;  ///< where the first clock begins in the data
  std::size_t workers = 1;
  parameter_routes routes;  ///< chosen by worker 0
  parameter_formats wire;   ///< chosen by worker 0
};

/// How many clocks old the parameters may be that a pass computes with. A worker that is alone has nobody to wait for.
[[nodiscard]] inline std::uint64_t staleness_of(const run_spec& run) {
  return run.workers > 1 ? run.solver.spec.poseidon().staleness() : 0;
}

/// This node's own.
struct node_spec {
  std::shared_ptr<device> compute;
  std::uint32_t replicas = 0;       ///< 0: as many as the cores and the batch allow
  std::filesystem::path data_root;  ///< where relative sources start; empty: the working directory
};

}  // namespace poseidon
