#include "actors/run/compile_run.hpp"

#include "actors/run/compile_checks.hpp"
#include "actors/run/opening_task.hpp"
#include "actors/run/train_net.hpp"
#include "actors/run/view_shares.hpp"
#include "data/empty_source.hpp"
#include "data/image_store.hpp"
#include "models/files/snapshot.hpp"
#include "models/net/fillers.hpp"
#include "models/net/sample_mean.hpp"
#include "models/net/side_branches.hpp"
#include "models/plan/byte_scale.hpp"
#include "models/plan/keepers.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace poseidon {

namespace {

void open_sources(compiled_net& c, source_options options, bool looked_at) {
  for (std::size_t l = 0; l < c.graph.layers.size(); ++l) {
    const auto& layer = c.graph.layers[l];
    if (!is_source(layer)) continue;
    options.layer = static_cast<std::uint32_t>(l);
    c.data_layers.push_back(l);
    c.sources.push_back(looked_at ? open_source(layer.spec, layer.where, options) : open_empty());
  }
  c.batch = batch_of(c.graph);
  if (c.data_layers.empty())
    throw spec_error("net \"" + c.graph.name + "\" has no data layer in phase " +
                     ::caffe::Phase_Name(c.graph.phase) + ", so there is nothing to train on.");
}

void set_outputs(compiled_net& c, bool of_batches = false) {
  auto outputs = list_outputs(c.graph, of_batches);
  c.outputs = std::move(outputs.values);
  c.readers = std::move(outputs.readers);
}

/// A test net computes with the train net's parameters: each of its layers with those of the train layer of
/// its name, slot by slot, whatever the test net itself says about sharing, as in Caffe.
void match_parameters(compiled_net& test, const net& train) {
  std::map<std::string, const net_layer*> trained;
  for (const auto& layer : train.layers)
    if (!layer.parameters.empty()) trained[layer.name] = &layer;
  auto& parameters = test.graph.parameters;
  parameters.clear();
  for (std::size_t l = 0; l < test.graph.layers.size(); ++l) {
    auto& layer = test.graph.layers[l];
    const auto found = trained.find(layer.name);
    for (std::size_t slot = 0; slot < layer.parameters.size(); ++slot) {
      const auto what = "layer \"" + layer.name + "\" (" + layer.type + ")";
      if (found == trained.end() || slot >= found->second->parameters.size())
        throw spec_error(layer.where,
                         what +
                             " of the test net has parameters, but the train net has no layer "
                             "of that name to take them from.");
      const auto& wanted = layer.parameter_shapes[slot];
      const auto& have = found->second->parameter_shapes[slot];
      if (have != wanted)
        throw spec_error(layer.where, what + ": parameter " + std::to_string(slot) + " is " +
                                          to_string(wanted) + " in the test net and " +
                                          to_string(have) + " in the train net.");
      const auto p = found->second->parameters[slot];
      test.to_train.push_back(as_id<parameter_id>(p));
      layer.parameters[slot] = parameters.size();
      parameters.push_back(train.parameters[p]);
      parameters.back().layer = l;
      parameters.back().slot = slot;
      parameters.back().shape = wanted;
    }
  }
}

void compile(compiled_net& c, const compiled_run& run, device& compute,
             replica_options options = {}) {
  for (std::uint32_t r = 0; r < run.replicas; ++r) {
    const auto& graph = c.graph_of(r);
    auto& values = c.values.emplace_back();
    for (std::size_t p = 0; p < c.graph.parameters.size(); ++p) {
      const auto of = c.trained(p);
      values.push_back(run.own && &c == &run.train ? &run.own->view(of)
                       : run.pins.empty()          ? &run.store->view(of)
                                                   : &run.pins[r]->view(of));
    }
    options.index = r;
    c.replicas.push_back(compute.make_replica(graph, values, options));
    c.fed.emplace_back(c.data_layers.size());
  }
}

/// Splits this node's share over its replicas: two nets, where the share does not divide evenly.
void take_share(const run_definition& run, const node_spec& node, const source_options& sources,
                compiled_run& out) {
  auto& train = out.train;
  require_sample_means(train.graph);
  const auto& share = out.shares.at(node.worker);
  const auto whole = std::exchange(train.graph, {});
  const auto part = [&](std::uint64_t samples) {
    auto n = build_part(run, sources, samples, out.whole_batch);
    require_same_parameters(whole, n);
    return n;
  };
  out.micro_batches = share.passes;
  train.batch = samples_of(share, 0);
  train.graph = part(train.batch);
  train.larger = static_cast<std::uint32_t>(share.samples % share.replicas);
  if (train.larger > 0) train.smaller = part(train.batch - 1);
}

void weigh_share(compiled_net& train, std::uint64_t whole_batch) {
  weigh_losses(train.graph, train.batch, whole_batch);
  if (train.smaller) weigh_losses(*train.smaller, train.batch - 1, whole_batch);
}

/// Resolves the train net, opens its data and divides its batch over the replicas.
void build_train(const run_definition& run, const node_spec& node,
                 const std::shared_ptr<opened_images>& opened, compiled_run& out) {
  const auto& s = run.solver;
  auto& train = out.train;
  auto sources = options_for(run, node, ::caffe::TRAIN, opened);
  if (node.own_data) {
    sources.workers_with_parts = run.workers;
    sources.micro_batches = out.micro_batches;
  }
  train.graph = build(s.train_net, s.train_state, sources, 1);
  open_sources(train, sources, node.compute->computes());
  out.whole_batch = train.batch;
  out.replicas =
      run.shares.empty() ? replicas_of(node, out.whole_batch) : run.shares.at(node.worker).replicas;
  out.readers = readers_of(node, out.replicas);
  out.shares = weighed_shares(run, out.whole_batch, out.replicas);
  const bool weighed = !out.shares.empty();
  if (weighed) {
    take_share(run, node, sources, out);
  } else {
    check_split(train, out.replicas);
    if (out.replicas > 1) {
      train.graph = build(s.train_net, s.train_state, sources, out.replicas);
      train.batch /= out.replicas;
    }
  }
  set_outputs(train, weighed || global_batch_of(run) > 0);  // the same ones in every view
  if (weighed) weigh_share(train, out.whole_batch);
}

partition cut_parameters(const run_definition& run, const net& n) {
  auto cut =
      make_partition(n, run.workers, run.routes, run.solver.spec.poseidon().replay().byte_scale());
  set_formats(cut, run.wire);
  set_keepers(cut, n.parameters, run.survive);
  return cut;
}

/// Where nodes may be lost, who is alone keeps the version before the newest, too: it goes back where one is lost that had just left.
std::size_t workers_of_store(const run_definition& run) {
  return run.survive > 0 ? std::max<std::size_t>(run.workers, 2) : run.workers;
}

std::shared_ptr<own_updates> own_updates_of(const run_definition& run, const device& compute,
                                            const compiled_run& c) {
  const auto& n = c.train.graph;
  const auto ahead = groups_that_run_ahead(n);
  own_updates_setup s;
  s.store = c.store;
  s.parameters = n.parameters;
  s.solver = run.solver.spec;
  s.arithmetic = compute.arithmetic();
  s.passes = std::uint64_t{passes_of_iteration(run.solver)} * c.replicas;
  s.scale = 1.0f / static_cast<float>(s.passes);
  if (std::find(ahead.begin(), ahead.end(), true) != ahead.end()) ++s.clocks_kept;
  return std::make_shared<own_updates>(std::move(s));
}

/// Cuts the parameters for the routes of the run, and makes room for them.
void store_parameters(const run_definition& run, const device& compute, compiled_run& out) {
  auto& n = out.train.graph;
  const auto byte_scale = run.solver.spec.poseidon().replay().byte_scale();
  check_routes(n, run);
  out.by_factors = factor_layers(n, run.routes);
  check_factor_layers(n, run, out.by_factors, !out.shares.empty());
  check_lowrank_layers(n, run);
  if (!compute.computes()) {
    scale_parameters(n, byte_scale);
    if (out.train.smaller) scale_parameters(*out.train.smaller, byte_scale);
  }
  check_formats(n, run);
  auto cut = cut_parameters(run, n);
  check_staleness(cut, run);
  out.store = std::make_shared<parameter_store>(n.parameters, std::move(cut), workers_of_store(run),
                                                staleness_of(run), compute.host_memory());
  if (outer_rule_of(run.solver.spec)) out.own = own_updates_of(run, compute, out);
  if (staleness_of(run) > 0)
    for (std::uint32_t r = 0; r < out.replicas; ++r)
      out.pins.push_back(std::make_shared<pass_versions>(out.store));
}

void compile_train(const run_definition& run, const node_spec& node, compiled_run& out) {
  replica_options options;
  options.by_factors = out.by_factors;
  options.keep_all_diffs = run.solver.spec.debug_info();
  options.time_scale = run.solver.spec.poseidon().replay().time_scale();
  options.passes = out.passes_added = passes_added(out, run, *node.compute);
  compile(out.train, out, *node.compute, options);
  if (!node.joins_gradients) return;
  out.joined = node.compute->join_gradients(out.train.replicas);
  out.updates = updates_of(out, run, *node.compute);
  out.store->leave_to(out.updates);
}

void compile_tests(const run_definition& run, const node_spec& node,
                   const std::shared_ptr<opened_images>& opened, compiled_run& out) {
  const auto& s = run.solver;
  out.tests.reserve(s.test_nets.size());  // replicas keep pointers into their net
  for (std::size_t t = 0; t < s.test_nets.size(); ++t) {
    auto& test = out.tests.emplace_back();
    const auto sources = options_for(run, node, ::caffe::TEST, opened);
    test.graph = build(s.test_nets[t], s.test_states[t], sources, 1);
    open_sources(test, sources, node.compute->computes());
    set_outputs(test);
    match_parameters(test, out.train.graph);
    compile(test, out, *node.compute);
  }
}

}  // namespace

std::shared_ptr<opened_images> open_for(const task_display& display) {
  return std::make_shared<opened_images>(
      [display](const auto& path) { return show_opening(display, path.string()); });
}

std::unique_ptr<compiled_run> compile_run(const run_definition& run, const node_spec& node,
                                          const task_display& display,
                                          std::shared_ptr<opened_images> opened) {
  const auto shown = show(display, {"building the net and opening its data", 0, {}});
  auto out = std::make_unique<compiled_run>();
  check_device(run, *node.compute);
  out->micro_batches = passes_of(run.solver);
  if (opened == nullptr) opened = open_for(display);
  build_train(run, node, opened, *out);
  store_parameters(run, *node.compute, *out);
  compile_train(run, node, *out);
  compile_tests(run, node, opened, *out);
  refuse_writers(*out, run);
  check_goals(*out, run);
  out->warnings = warn_of_own_data(run, node);
  for (auto& line : warn_of_global_batch(run, out->train.graph))
    out->warnings.push_back(std::move(line));
  for (auto& line : warn_of_host_layers(*out, *node.compute))
    out->warnings.push_back(std::move(line));
  out->remarks = node.compute->take_remarks();
  return out;
}

bool fit_to_view(compiled_run& c, const run_definition& run, const node_spec& node) {
  const auto& n = c.train.graph;
  const auto& compute = *node.compute;
  // A share decides how large the nets are; with staleness a replica remembers versions; what a GPU updates or adds by itself depends
  // on the view, and whether it has to forget anything else has not been tried.
  if (!run.declared.empty() || !run.shares.empty() || !c.shares.empty() || node.own_data ||
      staleness_of(run) > 0 || compute.is_asynchronous() || c.updates || c.joined > 1)
    return false;
  if (!weighed_shares(run, c.whole_batch, c.replicas).empty()) return false;
  check_routes(n, run);
  if (c.store->copies() != parameter_store::copies_for(workers_of_store(run), staleness_of(run)) ||
      factor_layers(n, run.routes) != c.by_factors ||
      passes_added(c, run, compute) != c.passes_added)
    return false;
  check_formats(n, run);
  c.store->cut_again(cut_parameters(run, n));
  return true;
}

void write_first_values(const net& train, std::uint64_t seed,
                        const std::vector<std::filesystem::path>& weights, std::uint64_t version,
                        parameter_store& store) {
  std::vector<std::span<float>> values;
  for (std::size_t p = 0; p < train.parameters.size(); ++p) {
    values.push_back(store.values(as_id<parameter_id>(p), version));
    fill(train.parameters[p], static_cast<std::uint32_t>(p), seed, values.back());
  }
  for (const auto& file : weights)
    copy_weights(read_caffemodel(file), file.string(), train, values);
}

}  // namespace poseidon
