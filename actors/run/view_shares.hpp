// actors/run/view_shares.hpp
//
// How the members of a view share out the samples of a clock. Each takes the net's batch (--global-batch scale), or a part of
// it that worker 0 has told (--batch-share); or the samples of a clock stay the same in every view (--global-batch keep), and
// every node computes by itself which part is its own.
#pragma once
#include "actors/run/run_definition.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// Passes of a node in an iteration, where it takes the net's batch in each: iter_size.
[[nodiscard]] std::uint32_t passes_of_iteration(const solver_file& solver);
/// Passes of a node in a clock: those of one iteration, or with outer steps those of all its iterations.
[[nodiscard]] std::uint32_t passes_of(const solver_file& solver);

/// Samples per clock over all nodes, which stay in every view; 0: they are the number of nodes times the net's batch.
[[nodiscard]] inline std::uint64_t global_batch_of(const run_definition& run) {
  return run.solver.spec.poseidon().global_batch();
}

/// By worker, where passes may have other sizes than the net's batch or the nodes other numbers of passes: then each pass counts
/// by its number of samples. Empty: every pass counts alike.
/// `batch`: the net's; `replicas`: this node's and, where the global batch stays, every other node's, too.
/// Errors   spec_error: the shares that worker 0 has told are not of this batch; a global batch that cannot be shared out.
[[nodiscard]] node_shares weighed_shares(const run_definition& run, std::uint64_t batch,
                                         std::uint32_t replicas);

/// The value of --global-batch: in views with other numbers of nodes, each node still takes the net's batch, or the samples of
/// a clock stay.
enum class batch_rule { scale, keep };

[[nodiscard]] batch_rule batch_rule_of(const run_definition& run);
[[nodiscard]] std::string to_string(batch_rule rule);

/// What the node that begins a run knows of its global batch.
struct batch_wish {
  batch_rule rule = batch_rule::scale;
  std::uint64_t resumed = 0;   ///< samples per clock that the resumed run kept; 0: it kept none
  std::size_t most_nodes = 1;  ///< in any view that is planned
};

/// Sets the samples per clock that stay, if any are to: those of the resumed run where that kept some, else those of the
/// first view.  Returns  warnings for the user.
/// Errors   spec_error, with --global-batch keep: --own-data; a net whose batch cannot be shared out; fewer samples than
///          `most_nodes` need.
[[nodiscard]] std::vector<std::string> settle_global_batch(run_definition& run,
                                                           const node_spec& node,
                                                           const batch_wish& wish);

/// The run as if each node took the net's batch in each pass: the most that a node may have to hold in any view.
[[nodiscard]] run_definition with_whole_batches(run_definition run, const node_spec& node);

/// Why so many nodes cannot take part; empty: there is a sample for each replica.
[[nodiscard]] std::optional<std::string> too_few_samples(const run_definition& run,
                                                         std::size_t nodes, std::uint32_t replicas);

/// What a kept global batch changes in the results of this net.
[[nodiscard]] std::vector<std::string> warn_of_global_batch(const run_definition& run,
                                                            const net& train);

}  // namespace poseidon
