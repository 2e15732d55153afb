#include "actors/compiled_run.hpp"

#include "data/image_store.hpp"
#include "models/fillers.hpp"
#include "models/snapshot.hpp"

#include <algorithm>
#include <map>
#include <thread>

namespace poseidon {

namespace {

// Larger unconsumed blobs (a label that nothing reads) are no values to print.
constexpr std::int64_t longest_printed_output = 10;

source_options options_for(const run_spec& run, const node_spec& node, ::caffe::Phase phase,
                           std::shared_ptr<opened_images> opened) {
  source_options o;
  o.phase = phase;
  o.data_root = node.data_root;
  o.seed = run.seed;
  o.opened = std::move(opened);
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

void open_sources(compiled_net& c, source_options options) {
  for (std::size_t l = 0; l < c.graph.layers.size(); ++l) {
    const auto& layer = c.graph.layers[l];
    if (!is_source(layer)) continue;
    options.layer = static_cast<std::uint32_t>(l);
    c.data_layers.push_back(l);
    c.sources.push_back(open_source(layer.spec, layer.where, options));
    c.batch = static_cast<std::uint64_t>(c.graph.blobs[layer.tops.front()].shape.front());
  }
  if (c.data_layers.empty())
    throw spec_error("net \"" + c.graph.name + "\" has no data layer in phase " +
                     ::caffe::Phase_Name(c.graph.phase) + ", so there is nothing to train on.");
}

void list_outputs(compiled_net& c) {
  for (std::size_t l = 0; l < c.graph.layers.size(); ++l) {
    const auto& layer = c.graph.layers[l];
    layer_outputs reader{l, c.outputs.size(), {}};
    for (std::size_t t = 0; t < layer.tops.size(); ++t) {
      const auto blob = layer.tops[t];
      const auto& outputs = c.graph.outputs;
      const auto values = count(c.graph.blobs[blob].shape);
      if (std::find(outputs.begin(), outputs.end(), blob) == outputs.end() ||
          producer(c.graph, blob, c.graph.layers.size()) != l || values > longest_printed_output)
        continue;
      reader.blobs.push_back(blob);
      for (std::int64_t i = 0; i < values; ++i)
        c.outputs.push_back(
            {c.graph.blobs[blob].name + (values > 1 ? "[" + std::to_string(i) + "]" : ""),
             t < layer.loss_weights.size() ? layer.loss_weights[t] : 0.0f});
    }
    if (!reader.blobs.empty()) c.readers.push_back(std::move(reader));
  }
}

/// A test net computes with the train net's parameters, found by layer name and slot.
void match_parameters(compiled_net& test, const net& train) {
  std::map<std::pair<std::string, std::size_t>, std::size_t> by_name;
  for (const auto& layer : train.layers)
    for (std::size_t s = 0; s < layer.parameters.size(); ++s)
      by_name[{layer.name, s}] = layer.parameters[s];
  for (const auto& p : test.graph.parameters) {
    const auto& layer = test.graph.layers[p.layer];
    const auto found = by_name.find({layer.name, p.slot});
    if (found == by_name.end())
      throw spec_error(layer.where,
                       "layer \"" + layer.name + "\" (" + layer.type +
                           ") of the test net has parameters, but the train net has no layer "
                           "of that name to take them from.");
    const auto& have = train.parameters[found->second].shape;
    if (have != p.shape)
      throw spec_error(layer.where, "layer \"" + layer.name + "\" (" + layer.type +
                                        "): parameter " + std::to_string(p.slot) + " is " +
                                        to_string(p.shape) + " in the test net and " +
                                        to_string(have) + " in the train net.");
    test.to_train.push_back(found->second);
  }
}

void compile(compiled_net& c, const parameter_store& store,
             const std::vector<std::size_t>& to_train, device& compute, std::uint32_t replicas) {
  std::vector<const parameter_values*> values;
  for (std::size_t p = 0; p < c.graph.parameters.size(); ++p)
    values.push_back(&store.view(to_train.empty() ? p : to_train[p]));
  for (std::uint32_t r = 0; r < replicas; ++r)
    c.replicas.push_back(compute.make_replica(c.graph, values, {}));
}

/// What a later version will train, refused before it trains something else.
void refuse_unfinished(const solver_file& s, const net& n) {
  if (s.spec.clip_gradients() >= 0)
    throw spec_error(s.where,
                     "clip_gradients " + std::to_string(s.spec.clip_gradients()) +
                         " needs the norm over all shards, which this version does not gather. "
                         "Remove it (-1 is off) or lower base_lr.");
  if (s.spec.snapshot_format() == ::caffe::SolverParameter::HDF5 && s.spec.has_snapshot_format())
    throw spec_error(s.where,
                     "snapshot_format HDF5 is not written by this version; BINARYPROTO is.");
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    for (const auto p : n.layers[l].parameters)
      if (n.parameters[p].layer != l)
        throw spec_error(n.layers[l].where,
                         "layer \"" + n.layers[l].name + "\" shares parameter \"" +
                             n.parameters[p].name + "\" with layer \"" +
                             n.layers[n.parameters[p].layer].name +
                             "\": this version trains nets without shared parameters only.");
}

}  // namespace

std::uint32_t default_replicas(std::uint64_t batch, std::uint32_t cores) {
  for (auto r = std::max(1u, cores); r > 1; --r)
    if (batch % r == 0 && batch / r >= 8) return r;
  return 1;
}

std::unique_ptr<compiled_run> compile_run(const run_spec& run, const node_spec& node) {
  auto out = std::make_unique<compiled_run>();
  const auto& s = run.solver;
  out->micro_batches = static_cast<std::uint32_t>(std::max(1, s.spec.iter_size()));

  const auto opened = std::make_shared<opened_images>();
  const auto train_sources = options_for(run, node, ::caffe::TRAIN, opened);
  out->train.graph = build(s.train_net, s.train_state, train_sources, 1);
  refuse_unfinished(s, out->train.graph);
  open_sources(out->train, train_sources);
  out->replicas = node.replicas != 0
                      ? node.replicas
                      : default_replicas(out->train.batch, std::thread::hardware_concurrency());
  if (out->train.batch % out->replicas != 0)
    throw spec_error(out->train.graph.layers[out->train.data_layers.front()].where,
                     "a batch of " + std::to_string(out->train.batch) + " cannot be split over " +
                         std::to_string(out->replicas) +
                         " replicas. Choose --devices cpu:R with R " +
                         "dividing the batch size, or change batch_size.");
  if (out->replicas > 1) {
    out->train.graph = build(s.train_net, s.train_state, train_sources, out->replicas);
    out->train.batch /= out->replicas;
  }
  list_outputs(out->train);
  out->store = std::make_shared<parameter_store>(out->train.graph,
                                                 make_partition(out->train.graph, run.workers));
  compile(out->train, *out->store, {}, *node.compute, out->replicas);

  out->tests.reserve(s.test_nets.size());  // replicas keep pointers into their net

  for (std::size_t t = 0; t < s.test_nets.size(); ++t) {
    auto& test = out->tests.emplace_back();
    const auto sources = options_for(run, node, ::caffe::TEST, opened);
    test.graph = build(s.test_nets[t], s.test_states[t], sources, 1);
    open_sources(test, sources);
    list_outputs(test);
    match_parameters(test, out->train.graph);
    compile(test, *out->store, test.to_train, *node.compute, out->replicas);
  }
  return out;
}

parameter_arrays initial_values(const net& train, std::uint64_t seed,
                                const std::filesystem::path& weights) {
  parameter_arrays values;
  for (std::size_t p = 0; p < train.parameters.size(); ++p) {
    auto& v = values.emplace_back(static_cast<std::size_t>(count(train.parameters[p].shape)));
    fill(train.parameters[p], static_cast<std::uint32_t>(p), seed, v);
  }
  if (!weights.empty()) copy_weights(read_caffemodel(weights), weights.string(), train, values);
  return values;
}

}  // namespace poseidon
