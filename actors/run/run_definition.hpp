// actors/run/run_definition.hpp - what is trained, the same on every node, and how this node takes part in it.
#pragma once
#include "data/batch_shares.hpp"
#include "messages/frames.hpp"
#include "models/device/device.hpp"
#include "models/device/wire_format.hpp"
#include "models/files/snapshot.hpp"
#include "models/net/declared_net.hpp"
#include "models/optimizer_rule.hpp"
#include "models/plan/routes.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"
#include "models/solver/update_choice.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// Agreed by all nodes; travels in frames::view.
struct run_definition {
  /// Not empty: programs around the nodes compute the gradients of these parameters. Then `solver` has neither nets nor a rule.
  std::vector<declared_parameter> declared;
  /// By parameter of `declared`: of worker 0's first values.
  std::vector<frames::byte_digest> first_digests;
  std::vector<frames::shared_entry> shared;  ///< what worker 0's program has beside them
  bool takes_newcomers = false;              ///< programs may join later
  frames::given_state given = {};            ///< to those that come with this view
  /// By parameter of `declared`: the most rows that its factors have on one worker in a clock; 0, or a shorter list: it has
  /// none.
  std::vector<std::uint32_t> factor_rows;
  /// Of the programs around the nodes, where the nodes make its steps.
  optimizer_rule optimizer = optimizer_rule::none;
  solver_file solver;
  std::uint64_t seed = 1;
  std::uint64_t first_clock = 0;
  data_position data;  ///< where the first clock begins in the data
  std::size_t workers = 1;
  parameter_routes routes;  ///< chosen by worker 0
  parameter_formats wire;   ///< chosen by worker 0
  /// Worker 0 has chosen by the measured rate of its links, and proposes other routes when nodes report other rates.
  bool routes_follow_links = false;
  node_shares shares;  ///< decided by worker 0; empty: equal shares
  /// How many nodes may be lost at the same time without loss of solver state: the number of copies of each chunk's on other nodes.
  std::uint32_t survive = 0;
  /// Where more are lost, the solver state that nobody has any more begins with zeros; else the run ends.
  bool zeroes_lost_state = false;
  std::uint64_t state_zeroed_at = 0;  ///< the last clock at which that happened; 0: it has not
  /// Members of this run's views so far, by rising seat, one of each fingerprint: actors/run/kinds.hpp.
  std::vector<frames::member> kinds;
  std::vector<frames::data_set> data_sets;  ///< of the first node: actors/run/data_sets.hpp
  /// By layer of the train net: why worker 0 has chosen its route, for the user; empty, or fewer: no reason to show.
  std::vector<std::string> reasons;
};

/// The rule by which the nodes make updates; empty: programs have declared the parameters (run_definition::optimizer).
[[nodiscard]] inline std::optional<solver_rule> rule_of(const run_definition& run) {
  return run.declared.empty() ? std::optional(shared_rule_of(run.solver.spec)) : std::nullopt;
}

/// That was asked for, of programs' gradients in their first clock.
[[nodiscard]] inline wire_format wire_of_programs(const run_definition& run) {
  const auto reduced = std::find_if(run.wire.begin(), run.wire.end(),
                                    [](wire_format f) { return f != wire_format::float32; });
  return reduced == run.wire.end() ? wire_format::float32 : *reduced;
}

/// Who makes the updates of this run's parameters.
[[nodiscard]] inline update_choice update_of(const run_definition& run) {
  const auto rule = rule_of(run);
  return rule ? update_choice(*rule) : update_choice(run.optimizer);
}

/// Arrays of solver state that the nodes keep for each parameter.
[[nodiscard]] inline std::size_t history_count(const run_definition& run) {
  return update_of(run).arrays();
}

/// Those that a view hands over which begins with this clock: none before the first update.
[[nodiscard]] inline std::size_t state_arrays_at(const run_definition& run, std::uint64_t clock) {
  return clock == 0 ? 0 : history_count(run);
}

/// The iteration with which a clock of the run begins, as its user counts them.
[[nodiscard]] inline std::uint64_t iteration_of(const run_definition& run, std::uint64_t clock) {
  return iteration_of(run.solver.spec, clock);
}

/// How many clocks old the parameters may be that a pass computes with; 0 in a single-worker run.
[[nodiscard]] inline std::uint64_t staleness_of(const run_definition& run) {
  return run.workers > 1 ? run.solver.spec.poseidon().staleness() : 0;
}

/// This node's part: its device and where its data lie.
struct node_spec {
  std::shared_ptr<device> compute;
  std::uint32_t replicas = 0;  ///< 0: the cores and the batch decide
  std::uint32_t readers = 0;   ///< threads that fill each replica's batches; 0: default_readers()
  std::filesystem::path data_root;  ///< where relative sources start; empty: the working directory
  bool own_data = false;            ///< this node has its own part of the train net's data
  std::size_t worker = 0;  ///< which of the run's workers this node is, once there is a view
  /// Whether the device may add its replicas' gradients and make updates by itself. Replicas then wait for each other's
  /// backward passes, for which a caller without actors would have to provide.
  bool joins_gradients = true;
};

}  // namespace poseidon
