#include "apps/bare/feature_run.hpp"

#include "actors/run/pass_loop.hpp"
#include "cpu/cpu_device.hpp"
#include "data/batch_filler.hpp"
#include "data/image_store.hpp"
#include "models/net/fillers.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <exception>
#include <set>
#include <thread>

namespace poseidon::app {
namespace {

// For mirrors, which are random in phase TEST, too; the same in every part.
constexpr std::uint64_t seed = 1;

source_options source_options_of(const feature_request& request) {
  source_options options;
  options.phase = ::caffe::TEST;
  options.data_root = request.data_root;
  options.seed = seed;
  options.opened = std::make_shared<opened_images>();
  return options;
}

net build(const feature_request& request, const source_options& sources) {
  build_options options;
  options.state = {::caffe::TEST, request.level, request.stages};
  options.sources = shapes_from_sources(sources);
  const auto file = read_net(request.model);
  const auto filtered = filter_net(file, options.state);
  for (int l = 0; l < filtered.spec.layer_size(); ++l) {
    const auto& layer = filtered.spec.layer(l);
    const auto refuse = [&](const char* text) {
      throw spec_error(filtered.layer_places[static_cast<std::size_t>(l)],
                       "layer \"" + layer.name() + "\" (" + layer.type() + ") " + text);
    };
    if (layer.type() == "Input" && !request.input)
      refuse(
          "reads no data. Give pictures with --images, or put a Data, ImageData or HDF5Data layer "
          "in its place.");
    if (layer.type() == "HDF5Output")
      refuse("writes a file of its own. Take it out: its bottoms are what --blobs can name.");
  }
  return build_net(file, options);
}

std::size_t last_writer(const net& n, std::size_t blob) {
  std::size_t writer = 0;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& tops = n.layers[l].tops;
    if (std::find(tops.begin(), tops.end(), blob) != tops.end()) writer = l;
  }
  return writer;
}

/// The last blob of that name.
std::size_t find_blob(const net& n, const std::string& name, const std::string& file) {
  for (std::size_t b = n.blobs.size(); b-- > 0;)
    if (n.blobs[b].name == name) return b;
  std::vector<std::string> known;
  for (const auto& layer : n.layers)
    if (layer.type != "Split")
      for (const auto top : layer.tops)
        if (std::find(known.begin(), known.end(), n.blobs[top].name) == known.end())
          known.push_back(n.blobs[top].name);
  const auto near = did_you_mean(name, known);
  throw spec_error(file + ": the net \"" + n.name + "\" has no blob \"" + name +
                   "\" in phase TEST." +
                   (near.empty() ? " It has " + comma_list(known) + "." : near));
}

}  // namespace

feature_run::feature_run(const feature_request& request) : device_(make_cpu_device()) {
  const auto sources = source_options_of(request);
  net_ = build(request, sources);
  open_sources(request, sources);
  find_blobs(request);
  load(request);
  std::vector<const parameter_values*> pointers;
  for (const auto& values : arrays_) {
    holders_.push_back(std::make_unique<parameter_values>());
    holders_.back()->values = values.data();
    pointers.push_back(holders_.back().get());
  }
  for (std::uint32_t r = 0; r < std::max(1u, request.lanes); ++r) {
    replica_options options;
    options.index = r;
    auto& one = lanes_.emplace_back();
    one.copy = device_->make_replica(net_, pointers, options);
    one.fed.resize(sources_.size());
    one.out.values.resize(wanted_.size());
  }
}

std::uint64_t feature_run::records() const {
  return sources_[counted_]->size();
}

void feature_run::open_sources(const feature_request& request, const source_options& options) {
  bool fed = false;
  for (std::size_t l = 0; l < net_.layers.size(); ++l) {
    const auto& layer = net_.layers[l];
    if (!is_source(layer)) continue;
    auto here = options;
    here.layer = static_cast<std::uint32_t>(l);
    source_layers_.push_back(l);
    const bool is_input = layer.type == "Input";
    if (is_input && (fed || layer.tops.size() != 1))
      throw spec_error(layer.where, "layer \"" + layer.name +
                                        "\" (Input): the net has a second input, and pictures fill "
                                        "only one.");
    if (is_input) {
      auto sample = net_.blobs[layer.tops.front()].shape;
      sample.erase(sample.begin());
      sources_.push_back(request.input(sample));
      fed = true;
    } else {
      sources_.push_back(open_source(layer.spec, layer.where, here));
    }
    const auto rows = static_cast<std::uint64_t>(net_.blobs[layer.tops.front()].shape.front());
    if (batch_ == 0) batch_ = rows;
    if (rows != batch_)
      throw spec_error(layer.where, "layer \"" + layer.name + "\" has a batch of " +
                                        std::to_string(rows) + ", the net's first source one of " +
                                        std::to_string(batch_) + ". Make them equal.");
  }
  if (request.input && !fed)
    throw spec_error("net \"" + net_.name +
                     "\" has no Input layer for pictures: it reads data of its own. Give the "
                     "deploy net.");
  if (sources_.empty())
    throw spec_error("net \"" + net_.name +
                     "\" has no layer that reads data in phase TEST. Give it a Data, ImageData or "
                     "HDF5Data layer.");
  while (counted_ + 1 < sources_.size() &&
         net_.layers[source_layers_[counted_]].type == "DummyData")
    ++counted_;
}

void feature_run::find_blobs(const feature_request& request) {
  blobs_ = request.blobs;
  if (blobs_.empty()) {
    for (const auto b : net_.outputs) blobs_.push_back(net_.blobs[b].name);
    if (blobs_.size() != 1)
      throw spec_error(request.model.string() + ": the net has " + plural(blobs_.size(), "output") +
                       (blobs_.empty() ? std::string() : " (" + comma_list(blobs_) + ")") +
                       ". Name the one that is meant with --blob.");
  }
  for (const auto& name : blobs_) find_blob_of(request, name);
}

void feature_run::find_blob_of(const feature_request& request, const std::string& name) {
  const auto blob = find_blob(net_, name, request.model.string());
  auto extents = net_.blobs[blob].shape;
  if (extents.empty() || extents.front() != static_cast<std::int64_t>(batch_))
    throw spec_error(request.model.string() + ": blob \"" + name + "\" is " + to_string(extents) +
                     ": it has no row for each of the " + std::to_string(batch_) +
                     " images of a batch.");
  extents.erase(extents.begin());
  row_shapes_.push_back(std::move(extents));
  wanted_.push_back({blob, last_writer(net_, blob)});
  last_layer_ = std::max(last_layer_, wanted_.back().after);
}

void feature_run::load(const feature_request& request) {
  for (std::uint32_t p = 0; p < net_.parameters.size(); ++p) {
    arrays_.emplace_back(static_cast<std::size_t>(count(net_.parameters[p].shape)));
    fill(net_.parameters[p], p, seed, arrays_.back());
  }
  std::set<std::string> copied;
  std::string files;
  for (const auto& path : request.weights) {
    const auto names = copy_weights(read_caffemodel(path), path.string(), net_, arrays_);
    copied.insert(names.begin(), names.end());
    files += (files.empty() ? "" : ", ") + path.string();
  }
  for (std::size_t l = 0; l <= last_layer_; ++l) {
    const auto& layer = net_.layers[l];
    const bool owns = std::any_of(layer.parameters.begin(), layer.parameters.end(),
                                  [&](std::size_t p) { return net_.parameters[p].layer == l; });
    if (owns && copied.count(layer.name) == 0)
      throw spec_error(layer.where,
                       "layer \"" + layer.name + "\" (" + layer.type + ") has parameters, " +
                           (files.empty() ? "and no --weights are given"
                                          : "and " + files + " has no layer of that name") +
                           ": what it makes would be random. Layers are matched by name.");
  }
}

void feature_run::run(std::uint64_t first, std::uint64_t last,
                      const std::function<void(std::uint64_t, const feature_batch&)>& take) {
  for (auto at = first; at < last; at += lanes_.size()) {
    const auto busy = std::min<std::uint64_t>(lanes_.size(), last - at);
    std::vector<std::exception_ptr> errors(busy);
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < busy; ++r)
        threads.emplace_back([this, &errors, r, at] {
          try {
            device_->arithmetic()->enter_thread(1);
            forward(lanes_[r], at + r);
          } catch (...) {
            errors[r] = std::current_exception();
          }
        });
    }
    for (std::size_t r = 0; r < busy; ++r) {
      if (errors[r]) std::rethrow_exception(errors[r]);
      take(at + r, lanes_[r].out);
    }
  }
}

void feature_run::forward(lane& on, std::uint64_t number) {
  pass_loop loop(net_, *on.copy, last_layer_ + 1);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    fill_batch(*sources_[s], number * batch_, static_cast<std::int64_t>(batch_), on.fed[s]);
    loop.feed(source_layers_[s], on.fed[s]);
  }
  read_labels(on);
  loop.forward({number, number * batch_, seed, 0}, [&](std::size_t l, const auto& compute) {
    compute();
    read_blobs(on, l);
  });
}

void feature_run::read_blobs(lane& on, std::size_t layer) {
  for (std::size_t w = 0; w < wanted_.size(); ++w) {
    if (wanted_[w].after != layer) continue;
    const auto& blob = net_.blobs[wanted_[w].blob];
    const auto now = on.copy->extents(wanted_[w].blob);
    if (now != blob.shape)
      throw spec_error(
          "blob \"" + blob.name + "\" is " + to_string(now) + " in one batch and " +
          to_string(blob.shape) +
          " in others: a Filter leaves images out, so a row belongs to no known image.");
    on.out.values[w].resize(static_cast<std::size_t>(count(blob.shape)));
    on.copy->read_data(wanted_[w].blob, on.out.values[w]);
  }
}

/// The label is the second top of the source, where that has one value for each image.
void feature_run::read_labels(lane& on) const {
  const auto& shapes = sources_[counted_]->sample_shapes();
  if (shapes.size() < 2 || count(shapes[1]) != 1) return;
  const auto& values = on.fed[counted_].tops[1];
  on.out.labels.assign(values.begin(), values.end());
}

}  // namespace poseidon::app
