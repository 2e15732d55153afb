#include "actors/run/compiled_run.hpp"

#include "actors/run/opening_task.hpp"
#include "data/empty_source.hpp"
#include "data/image_store.hpp"
#include "data/synthetic_source.hpp"
#include "messages/wire/buffer_pool.hpp"
#include "models/files/snapshot.hpp"
#include "models/net/fillers.hpp"
#include "models/net/sample_mean.hpp"
#include "models/plan/byte_scale.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace poseidon {

namespace {

// Larger unconsumed blobs (a label that nothing reads) are no values to print.
constexpr std::int64_t longest_printed_output = 10;

source_options options_for(const run_definition& run, const node_spec& node, ::caffe::Phase phase,
                           std::shared_ptr<opened_images> opened) {
  source_options o;
  o.phase = phase;
  o.data_root = node.data_root;
  o.seed = run.seed;
  o.opened = std::move(opened);
  if (run.solver.spec.poseidon().has_synthetic())
    o.synthetic = parse_sample_shape(run.solver.spec.poseidon().synthetic());
  return o;
}

net build(const net_file& file, const net_state& state, const source_options& sources,
          std::int64_t split_batch) {
  build_options options;
  options.state = state;
  options.sources = shapes_from_sources(sources);
  options.split_batch = split_batch;
  return build_net(file, options);
}

/// The train net with so many samples of a batch.
net build_part(const run_definition& run, const source_options& sources, std::uint64_t samples,
               std::uint64_t of) {
  build_options options;
  options.state = run.solver.train_state;
  options.sources = shapes_from_sources(sources);
  options.samples = static_cast<std::int64_t>(samples);
  options.of_batch = static_cast<std::int64_t>(of);
  return build_net(run.solver.train_net, options);
}

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

/// `of_batches`: only those that are one value for a whole batch. Others are of single samples, or as many as there are
/// samples, and so other ones on each node where shares are uneven.
void list_outputs(compiled_net& c, bool of_batches = false) {
  for (std::size_t l = 0; l < c.graph.layers.size(); ++l) {
    const auto& layer = c.graph.layers[l];
    layer_outputs reader{l, c.outputs.size(), {}, {}};
    for (std::size_t t = 0; t < layer.tops.size(); ++t) {
      const auto blob = layer.tops[t];
      const auto& outputs = c.graph.outputs;
      const auto values = count(c.graph.blobs[blob].shape);
      const auto weight = t < layer.loss_weights.size() ? layer.loss_weights[t] : 0.0f;
      const bool summed = values > longest_printed_output;
      if (std::find(outputs.begin(), outputs.end(), blob) == outputs.end() ||
          producer(c.graph, blob, c.graph.layers.size()) != l || (summed && weight == 0) ||
          (of_batches && !c.graph.blobs[blob].shape.empty()))
        continue;
      reader.blobs.push_back(blob);
      reader.summed.push_back(summed);
      const auto& name = c.graph.blobs[blob].name;
      if (summed || values == 1)
        c.outputs.push_back({name, weight});
      else
        for (std::int64_t i = 0; i < values; ++i)
          c.outputs.push_back({name + "[" + std::to_string(i) + "]", weight});
    }
    if (!reader.blobs.empty()) c.readers.push_back(std::move(reader));
  }
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
      test.to_train.push_back(p);
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
      const auto of = c.to_train.empty() ? p : c.to_train[p];
      values.push_back(run.pins.empty() ? &run.store->view(of) : &run.pins[r]->view(of));
    }
    options.index = r;
    c.replicas.push_back(compute.make_replica(graph, values, options));
    c.fed.emplace_back(c.data_layers.size());
  }
}

/// Nodes that sleep and nodes that compute would train each other's models wrong.
void check_device(const run_definition& run, const device& compute) {
  const bool replays = run.solver.spec.poseidon().has_replay();
  if (replays == !compute.computes()) return;
  throw spec_error(
      "this run " + std::string(replays ? "replays a profile" : "trains") +
      ", and this node's --devices is \"" + compute.describe() + "\". Give " +
      (replays ? "--devices replay:PROFILE on every node." : "every node a device that computes."));
}

/// A shard keeps the gradients of the clocks that a peer is ahead. Said before the memory is taken.
void check_staleness(const partition& cut, const run_definition& run) {
  const auto s = staleness_of(run);
  std::uint64_t largest = 1;
  for (const auto& chunks : cut.by_owner) {
    std::uint64_t bytes = 0;
    for (const auto id : chunks) bytes += cut.chunks[id].count * sizeof(float);
    largest = std::max(largest, bytes);
  }
  if (s == 0 || (s + 1) * largest <= link_pool_bytes) return;
  const auto mib = [](std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  throw spec_error(
      "staleness " + std::to_string(s) + ": on each link gradients of " + mib((s + 1) * largest) +
      " could wait for those of other nodes, and a node keeps " + mib(link_pool_bytes) +
      " at most. For this net on " + std::to_string(run.workers) + " nodes the staleness can be " +
      std::to_string(std::max(link_pool_bytes / largest, std::uint64_t{1}) - 1) + ".");
}

const net_layer* hdf5_output_of(const net& n) {
  for (const auto& layer : n.layers)
    if (layer.type == "HDF5Output") return &layer;
  return nullptr;
}

/// One file has one writer: a run of several nodes or replicas, or of two nets, would have more.
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

/// One for each layer, in however many nets and replicas it is.
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

/// The layers that broadcast factors. What worker 0 has chosen has to be possible here too: with another
/// build it might not be.
std::vector<bool> chosen_layers(const net& n, const run_definition& run) {
  if (!run.routes.empty() && run.routes.size() != n.parameters.size())
    throw spec_error("worker 0 has chosen routes for " + std::to_string(run.routes.size()) +
                     " parameters, the net \"" + n.name + "\" has " +
                     std::to_string(n.parameters.size()) +
                     " here. Is its program of another version?");
  auto chosen = factor_layers(n, run.routes);
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    if (chosen[l])
      if (const auto why = why_no_factors(n, l, run.solver.spec); !why.empty())
        throw spec_error("layer \"" + n.layers[l].name + "\" cannot broadcast factors: " + why +
                         ".");
  if (const auto batch = batch_of(n); uneven(run.shares))
    for (std::size_t l = 0; l < n.layers.size(); ++l)
      if (chosen[l] && factors_of(n, l).rows % batch != 0)
        throw spec_error(n.layers[l].where,
                         "layer \"" + n.layers[l].name + "\" cannot broadcast factors: it has " +
                             std::to_string(factors_of(n, l).rows) + " rows for a batch of " +
                             std::to_string(batch) +
                             ", so a share of the batch is no number of rows. Put it on the server "
                             "with --routes, or leave out --batch-share.");
  return chosen;
}

partition cut_of(const net& n, const run_definition& run, double byte_scale) {
  if (!run.wire.empty() && run.wire.size() != n.parameters.size())
    throw spec_error("worker 0 has chosen wire formats for " + std::to_string(run.wire.size()) +
                     " parameters, the net \"" + n.name + "\" has " +
                     std::to_string(n.parameters.size()) +
                     " here. Is its program of another version?");
  auto cut = make_partition(n, run.workers, run.routes, byte_scale);
  set_formats(cut, run.wire);
  return cut;
}

/// Shares are of the batches of all nodes together, which worker 0 has read from its net.
const node_share& share_of(const run_definition& run, const node_spec& node, std::uint64_t batch) {
  if (run.shares.size() != run.workers || samples_of_all(run.shares) != run.workers * batch)
    throw spec_error("worker 0 has divided " + std::to_string(samples_of_all(run.shares)) +
                     " samples among " + std::to_string(run.shares.size()) +
                     " nodes, but here the batches of " + std::to_string(run.workers) +
                     " nodes are " + std::to_string(run.workers * batch) +
                     " samples. Is its program of another version?");
  return run.shares.at(node.worker);
}

/// Splits this node's share over its replicas, and makes each one's gradients count by its samples.
void take_share(const run_definition& run, const node_spec& node, const source_options& sources,
                compiled_run& out) {
  auto& train = out.train;
  require_sample_means(train.graph);
  const auto& share = share_of(run, node, out.whole_batch);
  const auto whole = std::exchange(train.graph, {});
  const auto part = [&](std::uint64_t samples) {
    auto n = build_part(run, sources, samples, out.whole_batch);
    require_same_parameters(whole, n);
    return n;
  };
  train.batch = samples_of(share, 0);
  train.graph = part(train.batch);
  train.larger = static_cast<std::uint32_t>(share.samples % share.replicas);
  if (train.larger > 0) train.smaller = part(train.batch - 1);
}

void weigh_share(compiled_net& train, std::uint64_t whole_batch) {
  weigh_losses(train.graph, train.batch, whole_batch);
  if (train.smaller) weigh_losses(*train.smaller, train.batch - 1, whole_batch);
}

}  // namespace

net resolve_train_net(const run_definition& run, const node_spec& node) {
  const auto& s = run.solver;
  const auto sources = options_for(run, node, ::caffe::TRAIN, std::make_shared<opened_images>());
  auto whole = build(s.train_net, s.train_state, sources, 1);
  if (!uneven(run.shares)) return whole;
  const auto batch = batch_of(whole);
  return build_part(run, sources, share_of(run, node, batch).samples, batch);
}

std::unique_ptr<compiled_run> compile_run(const run_definition& run, const node_spec& node,
                                          const task_display& display) {
  const auto shown = show(display, {"building the net and opening its data", 0, {}});
  auto out = std::make_unique<compiled_run>();
  const auto& s = run.solver;
  check_device(run, *node.compute);
  const auto& scales = s.spec.poseidon().replay();
  out->micro_batches = static_cast<std::uint32_t>(std::max(1, s.spec.iter_size()));

  const auto opened = std::make_shared<opened_images>(
      [display](const auto& path) { return show_opening(display, path.string()); });
  auto train_sources = options_for(run, node, ::caffe::TRAIN, opened);
  if (node.own_data) {
    train_sources.workers_with_parts = run.workers;
    train_sources.micro_batches = out->micro_batches;
  }
  out->train.graph = build(s.train_net, s.train_state, train_sources, 1);
  open_sources(out->train, train_sources, node.compute->computes());
  out->whole_batch = out->train.batch;
  out->replicas = run.shares.empty() ? replicas_of(node, out->whole_batch)
                                     : run.shares.at(node.worker).replicas;
  out->readers = readers_of(node, out->replicas);
  if (uneven(run.shares)) {
    take_share(run, node, train_sources, *out);
  } else if (out->train.batch % out->replicas != 0) {
    throw spec_error(out->train.graph.layers[out->train.data_layers.front()].where,
                     "a batch of " + std::to_string(out->train.batch) + " cannot be split over " +
                         std::to_string(out->replicas) +
                         " replicas. Choose as many with --devices as divide the batch size, or "
                         "change batch_size.");
  } else if (out->replicas > 1) {
    out->train.graph = build(s.train_net, s.train_state, train_sources, out->replicas);
    out->train.batch /= out->replicas;
  }
  list_outputs(out->train, uneven(run.shares));
  if (uneven(run.shares)) weigh_share(out->train, out->whole_batch);
  out->by_factors = chosen_layers(out->train.graph, run);
  if (!node.compute->computes()) {
    scale_parameters(out->train.graph, scales.byte_scale());
    if (out->train.smaller) scale_parameters(*out->train.smaller, scales.byte_scale());
  }
  auto cut = cut_of(out->train.graph, run, scales.byte_scale());
  check_staleness(cut, run);
  out->store = std::make_shared<parameter_store>(out->train.graph.parameters, std::move(cut),
                                                 run.workers, staleness_of(run),
                                                 node.compute->host_memory());
  if (staleness_of(run) > 0)
    for (std::uint32_t r = 0; r < out->replicas; ++r)
      out->pins.push_back(std::make_shared<pass_versions>(out->store));
  replica_options train_options;
  train_options.by_factors = out->by_factors;
  train_options.keep_all_diffs = s.spec.debug_info();
  train_options.time_scale = scales.time_scale();
  train_options.passes = out->passes_added = passes_added(*out, run, *node.compute);
  compile(out->train, *out, *node.compute, train_options);
  if (node.joins_gradients) {
    out->joined = node.compute->join_gradients(out->train.replicas);
    out->updates = updates_of(*out, run, *node.compute);
    out->store->leave_to(out->updates);
  }

  out->tests.reserve(s.test_nets.size());  // replicas keep pointers into their net

  for (std::size_t t = 0; t < s.test_nets.size(); ++t) {
    auto& test = out->tests.emplace_back();
    const auto sources = options_for(run, node, ::caffe::TEST, opened);
    test.graph = build(s.test_nets[t], s.test_states[t], sources, 1);
    open_sources(test, sources, node.compute->computes());
    list_outputs(test);
    match_parameters(test, out->train.graph);
    compile(test, *out, *node.compute);
  }
  refuse_writers(*out, run);
  out->warnings = warn_of_host_layers(*out, *node.compute);
  out->remarks = node.compute->take_remarks();
  return out;
}

void write_first_values(const net& train, std::uint64_t seed,
                        const std::vector<std::filesystem::path>& weights, std::uint64_t version,
                        parameter_store& store) {
  std::vector<std::span<float>> values;
  for (std::size_t p = 0; p < train.parameters.size(); ++p) {
    values.push_back(store.values(p, version));
    fill(train.parameters[p], static_cast<std::uint32_t>(p), seed, values.back());
  }
  for (const auto& file : weights)
    copy_weights(read_caffemodel(file), file.string(), train, values);
}

}  // namespace poseidon
