#include "tools/oracle/one_pass.hpp"

#include "cpu/cpu_device.hpp"
#include "models/net/fillers.hpp"

#include <algorithm>
#include <span>

namespace poseidon::oracle {

one_pass::one_pass(const net& n, const parameter_arrays& values)
    : net_(n), device_(make_cpu_device()) {
  for (const auto& layer : n.layers)
    if (!device_->supports(layer.type))
      throw unsupported_layer(layer.where,
                              "layer \"" + layer.name + "\" (" + layer.type + ") has no kernel yet",
                              layer.type);
  for (const auto& array : values) {
    holders_.push_back(std::make_unique<parameter_values>());
    holders_.back()->values = array.data();
    pointers_.push_back(holders_.back().get());
  }
  fed_.resize(n.layers.size());
  replica_ = device_->make_replica(n, pointers_, {});
  device_->arithmetic()->enter_thread(1);
}

void one_pass::feed(std::size_t layer, const named_values& inputs) {
  const auto& l = net_.layers[layer];
  auto& tops = fed_[layer].tops;
  for (const auto top : l.tops) {
    const auto& blob = net_.blobs[top];
    tops.emplace_back(static_cast<std::size_t>(count(blob.shape)), 0.0f);
    if (const auto given = inputs.find(blob.name); given != inputs.end())
      tops.back().assign(given->second.begin(), given->second.end());
  }
  if (l.type != "Input") {
    source_options options;
    options.directory = ".";
    options.phase = net_.phase;
    const auto source = open_source(l.spec, l.where, options);
    const auto samples = static_cast<std::size_t>(net_.blobs[l.tops[0]].shape[0]);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      std::vector<std::span<float>> parts;
      for (auto& top : tops)
        parts.push_back(
            std::span(top).subspan(sample * (top.size() / samples), top.size() / samples));
      source->fill(sample, parts);
    }
  }
  replica_->at(layer).feed(fed_[layer]);
}

void one_pass::forward(const named_values& inputs) {
  const pass now{};
  for (std::size_t layer = 0; layer < net_.layers.size(); ++layer) {
    if (is_source(net_.layers[layer])) feed(layer, inputs);
    replica_->at(layer).forward(now);
  }
}

std::vector<float> one_pass::data(const std::string& blob) const {
  for (std::size_t i = net_.blobs.size(); i-- > 0;) {
    if (net_.blobs[i].name != blob) continue;
    std::vector<float> values(static_cast<std::size_t>(count(net_.blobs[i].shape)));
    replica_->read_data(i, values);
    return values;
  }
  throw std::invalid_argument("the net has no blob \"" + blob + "\"");
}

parameter_arrays fresh_values(const net& n) {
  parameter_arrays values;
  for (std::uint32_t p = 0; p < n.parameters.size(); ++p) {
    values.emplace_back(static_cast<std::size_t>(count(n.parameters[p].shape)));
    fill(n.parameters[p], p, 1, values.back());
  }
  return values;
}

net build_with_data(const net_file& file, const net_state& state) {
  source_options options;
  options.directory = ".";
  options.phase = state.phase;
  return build_net(file, {state, shapes_from_sources(options), 1});
}

}  // namespace poseidon::oracle
