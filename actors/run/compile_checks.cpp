#include "actors/run/compile_checks.hpp"

#include "actors/run/view_shares.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "models/plan/lowrank_routes.hpp"
#include "models/solver/goals.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <map>

namespace poseidon {

void check_device(const run_definition& run, const device& compute) {
  check_outer_steps(run.solver.spec);
  if (const auto outer = outer_rule_of(run.solver.spec); outer && compute.is_asynchronous())
    throw spec_error("poseidon { outer_steps: " + std::to_string(outer->every) +
                     " } needs a device that computes on the host, and this node's --devices is "
                     "\"" +
                     compute.describe() + "\". Give --devices cpu, or leave out outer_steps.");
  const bool replays = run.solver.spec.poseidon().has_replay();
  if (replays == !compute.computes()) return;
  throw spec_error(
      "this run " + std::string(replays ? "replays a profile" : "trains") +
      ", and this node's --devices is \"" + compute.describe() + "\". Give " +
      (replays ? "--devices replay:PROFILE on every node." : "every node a device that computes."));
}

namespace {

/// `what`: "routes" or "wire formats".
void check_count(const net& n, const std::string& what, std::size_t chosen) {
  if (chosen == 0 || chosen == n.parameters.size()) return;
  throw spec_error("worker 0 has chosen " + what + " for " + std::to_string(chosen) +
                   " parameters, the net \"" + n.name + "\" has " +
                   std::to_string(n.parameters.size()) +
                   " here. Is its program of another version?");
}

}  // namespace

void check_routes(const net& n, const run_definition& run) {
  check_count(n, "routes", run.routes.size());
}

void check_formats(const net& n, const run_definition& run) {
  check_count(n, "wire formats", run.wire.size());
}

void check_lowrank_layers(const net& n, const run_definition& run) {
  const auto routes = routes_of_layers(n, run.routes);
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (const auto rank = rank_of(routes[l]); rank > 0)
      if (const auto why = why_no_lowrank(n, l, rank, run.solver.spec); !why.empty())
        throw spec_error("layer \"" + n.layers[l].name + "\" cannot go by low rank: " + why + ".");
}

void check_factor_layers(const net& n, const run_definition& run,
                         const std::vector<bool>& by_factors, bool weighed) {
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (by_factors[l])
      if (const auto why = why_no_factors(n, l, run.solver.spec); !why.empty())
        throw spec_error("layer \"" + n.layers[l].name + "\" cannot broadcast factors: " + why +
                         ".");
  if (const auto batch = batch_of(n); weighed)
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      if (by_factors[l] && factors_of(n, l).rows % batch != 0)
        throw spec_error(n.layers[l].where,
                         "layer \"" + n.layers[l].name + "\" cannot broadcast factors: it has " +
                             std::to_string(factors_of(n, l).rows) + " rows for a batch of " +
                             std::to_string(batch) +
                             ", so a share of the batch is no number of rows. Put it on the server "
                             "with --routes, or leave out --batch-share and --global-batch keep.");
}

void check_staleness(const partition& cut, const run_definition& run) {
  const auto s = staleness_of(run);
  std::uint64_t largest = 1;
  for (const auto& chunks : cut.by_owner) {
    std::uint64_t bytes = 0;
    for (const auto id : chunks) bytes += cut.chunks[id].count * sizeof(float);
    largest = std::max(largest, bytes);
  }
  if (run.survive > 0) largest *= 2;  // keepers get as many sums on the same link
  if (s == 0 || (s + 1) * largest <= link_pool_bytes) return;
  const auto mib = [](std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  throw spec_error(
      "staleness " + std::to_string(s) + ": on each link gradients of " + mib((s + 1) * largest) +
      " could wait for those of other nodes, and a node keeps " + mib(link_pool_bytes) +
      " at most. For this net on " + std::to_string(run.workers) + " nodes the staleness can be " +
      std::to_string(std::max(link_pool_bytes / largest, std::uint64_t{1}) - 1) + ".");
}

void check_shares(const run_definition& run, std::uint64_t batch) {
  const auto whole = run.workers * passes_of(run.solver) * batch;
  if (run.shares.size() == run.workers && samples_of_all(run.shares) == whole) return;
  throw spec_error("worker 0 has divided " + std::to_string(samples_of_all(run.shares)) +
                   " samples among " + std::to_string(run.shares.size()) +
                   " nodes, but here the batches of " + std::to_string(run.workers) +
                   " nodes are " + std::to_string(whole) +
                   " samples. Is its program of another version?");
}

void check_split(const compiled_net& train, std::uint32_t replicas) {
  if (train.batch % replicas == 0) return;
  throw spec_error(train.graph.layers[train.data_layers.front()].where,
                   "a batch of " + std::to_string(train.batch) + " cannot be split over " +
                       std::to_string(replicas) +
                       " replicas. Choose as many with --devices as divide the batch size, or "
                       "change batch_size.");
}

namespace {

const net_layer* hdf5_output_of(const net& n) {
  for (const auto& layer : n.layers)
    if (layer.type == "HDF5Output") return &layer;
  return nullptr;
}

}  // namespace

void refuse_writers(const compiled_run& c, const run_definition& run) {
  std::map<std::string, const net_layer*> writers;
  const auto check = [&](const net& n) {
    const auto* layer = hdf5_output_of(n);
    if (layer == nullptr) return;
    const auto who = "layer \"" + layer->name + "\" (HDF5Output) ";
    if (run.workers > 1 || c.replicas > 1)
      throw spec_error(layer->where,
                       who + "writes one file, but " + std::to_string(run.workers) +
                           " nodes with " + std::to_string(c.replicas) +
                           " replicas each would write it. Run it on one node with one device: "
                           "--devices cpu:1, or a GPU as in --devices 0.");
    const auto& file = layer->spec.hdf5_output_param().file_name();
    if (!writers.emplace(file, layer).second)
      throw spec_error(layer->where, who + "writes \"" + file +
                                         "\" in several nets of this run. Put it into one, with "
                                         "include { phase: TEST }.");
  };
  check(c.train.graph);
  for (const auto& test : c.tests) check(test.graph);
}

void check_goals(const compiled_run& c, const run_definition& run) {
  const auto& solver = run.solver.spec;
  std::vector<std::string> names;
  for (const auto& test : c.tests)
    for (const auto& output : test.outputs) names.push_back(output.name);
  if (solver.test_compute_loss()) names.emplace_back("test_loss");
  const auto check = [&](const char* goal, const std::optional<output_goal>& wants) {
    if (!wants || std::find(names.begin(), names.end(), wants->output) != names.end()) return;
    throw spec_error(std::string(goal) + ": no test net has an output \"" + wants->output +
                     "\". There are " + comma_list(names) + "." +
                     did_you_mean(wants->output, names));
  };
  check("keep_best", keep_best_of(solver));
  check("stop_at", stop_at_of(solver));
}

std::vector<std::string> warn_of_host_layers(const compiled_run& c, const device& compute) {
  std::vector<std::string> warnings;
  const auto look = [&](const net& n) {
    for (const auto& layer : n.layers) {
      if (!compute.on_host(layer.type)) continue;
      auto text =
          "layer \"" + layer.name + "\" (" + layer.type +
          ") has no kernel on the GPU: it runs on the CPU, and each pass waits for its values";
      if (std::find(warnings.begin(), warnings.end(), text) == warnings.end())
        warnings.push_back(std::move(text));
    }
  };
  look(c.train.graph);
  for (const auto& test : c.tests) look(test.graph);
  return warnings;
}

std::vector<std::string> warn_of_own_data(const run_definition& run, const node_spec& node) {
  const bool first = run.solver.spec.poseidon().own_data();
  if (run.workers < 2 || node.own_data == first) return {};
  const auto who = first ? std::string(
                               "--own-data is given to the first node and not to this one: the "
                               "first node reads all of its data set, this node only its share.")
                         : std::string(
                               "--own-data is given to this node and not to the first one: this "
                               "node reads all of its data set, the first node only its share.");
  return {who + " Give it to all nodes, or to none."};
}

}  // namespace poseidon
