// apps/node/check_report.hpp - what `poseidon-node check` says of a run that training could begin.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "apps/node/memory_of_formats.hpp"
#include "models/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poseidon::app {

/// The data of a test net, and what one test phase reads of it.
struct test_figures {
  std::string net;
  std::uint64_t iterations = 0, batch = 0, samples = 0;

  [[nodiscard]] std::uint64_t tested() const { return iterations * batch; }
  /// "test_iter 50 x batch 100 = 5000 of 10000 samples".
  [[nodiscard]] std::string text() const;
};

struct run_figures {
  std::string net;
  std::uint64_t layers = 0, parameters = 0, replicas = 0, nodes = 0;
  std::uint64_t samples_per_iteration = 0, iterations = 0, snapshots = 0;
  std::uint64_t iterations_per_exchange = 1;   ///< more with outer steps
  std::optional<std::uint64_t> train_samples;  ///< in one epoch; empty: without end, as DummyData
  std::uint64_t state_values = 0;              ///< of the solver, over all nodes
  std::uint64_t memory_bytes = 0;  ///< that this node has taken for its nets; 0: not known
  memory_of_formats fewer_bytes;   ///< that it would take besides
  double first_rate = 0, last_rate = 0;

  /// Of this node, with its part of the solver's state. What libraries take while they compute is not in it.
  [[nodiscard]] std::uint64_t node_bytes() const { return memory_bytes + 4 * state_values / nodes; }
  /// By each node in an iteration, or with outer steps in all of one, if all layers use the parameter server: gradients to the other shards, and its own
  /// shard's parameters to all others.
  [[nodiscard]] std::uint64_t sent_bytes() const { return 8 * parameters * (nodes - 1) / nodes; }
  std::string rate_policy;
  std::vector<test_figures> tests;
};

/// `memory_bytes`: what compiling has taken.
[[nodiscard]] run_figures figures_of(const run_definition& run, const compiled_run& c,
                                     std::uint64_t memory_bytes);

/// A warning for each test phase that reads less or more than its data.
[[nodiscard]] std::vector<std::string> warn_of_tests(const run_figures& f);

[[nodiscard]] std::vector<std::string> lines_of(const run_figures& f);
[[nodiscard]] json_object json_of(const run_figures& f);

}  // namespace poseidon::app
