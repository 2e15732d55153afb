#include "actors/run/view_shares.hpp"

#include "actors/run/compile_checks.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/run/train_net.hpp"
#include "data/image_store.hpp"
#include "data/kept_batch.hpp"
#include "models/net/sample_mean.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon {

namespace {

const std::string option = "--global-batch keep: ";

std::string samples_text(std::uint64_t samples) {
  return plural(static_cast<std::size_t>(samples), "sample");
}

std::uint64_t samples_of_view(const run_definition& run, std::uint64_t batch) {
  return run.workers * passes_of(run.solver) * batch;
}

void require_no_own_data(const node_spec& node) {
  if (node.own_data)
    throw spec_error(option +
                     "--own-data does not go with it: as nodes join and leave, each would go "
                     "through its own part of the data at another pace. Give every node all of the "
                     "data, or --global-batch scale.");
}

/// What a view with more nodes would find out only when it begins.
void require_parts(const run_definition& run, const node_spec& node, const train_net& whole) {
  require_sample_means(whole.part);
  const auto sources = options_for(run, node, ::caffe::TRAIN, std::make_shared<opened_images>());
  try {
    require_same_parameters(whole.part, build_part(run, sources, 1, whole.batch));
  } catch (const spec_error& e) {
    throw spec_error(option + "nodes take from 1 to " + std::to_string(whole.batch) +
                     " samples at the same time, and with 1 this net cannot be built: " + e.what());
  }
}

}  // namespace

std::uint32_t passes_of_iteration(const solver_file& solver) {
  return static_cast<std::uint32_t>(std::max(1, solver.spec.iter_size()));
}

std::uint32_t passes_of(const solver_file& solver) {
  return passes_of_iteration(solver) *
         static_cast<std::uint32_t>(iterations_per_clock(solver.spec));
}

batch_rule batch_rule_of(const run_definition& run) {
  return global_batch_of(run) > 0 ? batch_rule::keep : batch_rule::scale;
}

std::string to_string(batch_rule rule) {
  return rule == batch_rule::keep ? "keep" : "scale";
}

node_shares weighed_shares(const run_definition& run, std::uint64_t batch, std::uint32_t replicas) {
  if (uneven(run.shares)) {
    check_shares(run, batch);
    return run.shares;
  }
  const auto total = global_batch_of(run);
  if (total == 0 || total == samples_of_view(run, batch)) return {};
  try {
    return shares_of({total, batch, replicas}, run.workers);
  } catch (const std::invalid_argument& e) {
    throw spec_error("the global batch cannot be shared: " + std::string(e.what()) + ".");
  }
}

std::vector<std::string> settle_global_batch(run_definition& run, const node_spec& node,
                                             const batch_wish& wish) {
  if (wish.rule == batch_rule::scale && wish.resumed == 0) return {};
  auto whole = resolve_train_net(run, node);
  const auto first = samples_of_view(run, whole.batch);
  if (wish.rule == batch_rule::scale) {
    if (first == wish.resumed) return {};
    return {"the run of this snapshot kept " + samples_text(wish.resumed) +
            " an iteration (--global-batch keep), and this one has " + std::to_string(first) +
            ". --global-batch keep goes on with " + std::to_string(wish.resumed) + "."};
  }
  require_no_own_data(node);
  require_parts(run, node, whole);
  const auto total = wish.resumed > 0 ? wish.resumed : first;
  const auto nodes = std::max(run.workers, wish.most_nodes);
  try {
    (void)shares_of({total, whole.batch, replicas_of(node, whole.batch)}, nodes);
  } catch (const std::invalid_argument& e) {
    throw spec_error(option + "the global batch cannot be shared: " + e.what() + ".");
  }
  run.solver.spec.mutable_poseidon()->set_global_batch(total);
  return {};
}

run_definition with_whole_batches(run_definition run, const node_spec& node) {
  if (global_batch_of(run) == 0) return run;
  auto& spec = *run.solver.spec.mutable_poseidon();
  spec.clear_global_batch();
  const auto batch = resolve_train_net(run, node).batch;
  spec.set_global_batch(samples_of_view(run, batch));  // a net that is for other views, too
  return run;
}

std::optional<std::string> too_few_samples(const run_definition& run, std::size_t nodes,
                                           std::uint32_t replicas) {
  const auto total = global_batch_of(run);
  if (total == 0 || nodes * replicas <= total) return std::nullopt;
  return "an iteration has " + samples_text(total) +
         " whoever takes part (--global-batch keep), and " + plural(nodes, "node") + " with " +
         plural(replicas, "replica") +
         " each need at least one for each replica. Another one can join when one of them has left";
}

std::vector<std::string> warn_of_global_batch(const run_definition& run, const net& train) {
  if (global_batch_of(run) == 0) return {};
  for (const auto& layer : train.layers)
    if (uses_batch_statistics(train, layer))
      return {"--global-batch keep: layer \"" + layer.name +
              "\" (BatchNorm) normalises with the samples of one pass on one replica, and their "
              "number changes with the number of nodes: so do its results, more than by rounding"};
  return {};
}

}  // namespace poseidon
