#include "models/net/sample_mean.hpp"

namespace poseidon {

namespace {

[[noreturn]] void refuse(const net_layer& layer, const std::string& why) {
  throw spec_error(layer.where,
                   "layer \"" + layer.name + "\" (" + layer.type + "): " + why +
                       " Leave out --batch-share and --global-batch keep: where every node "
                       "takes the net's batch, this net trains.");
}

/// A Split's top stands for the Split's bottom.
const net_layer& maker_of(const net& n, std::size_t l) {
  while (n.layers[l].type == "Split") l = producer(n, n.layers[l].bottoms.front(), l).value();
  return n.layers[l];
}

bool is_mean_over_batch(const net_layer& layer) {
  if (layer.type != "Reduction") return layer.type.ends_with("Loss");
  const auto& r = layer.spec.reduction_param();
  return r.axis() == 0 && r.operation() == ::caffe::ReductionParameter::MEAN;
}

}  // namespace

void require_sample_means(const net& n) {
  for (std::size_t l = 0; l < n.layers.size(); ++l)
    for (const auto weight : n.layers[l].loss_weights) {
      if (weight == 0) continue;
      const auto& layer = maker_of(n, l);
      if (!is_mean_over_batch(layer))
        refuse(layer,
               "its loss is a sum over the samples of a batch, not a mean, so a node with fewer "
               "samples could not count by them.");
      if (layer.spec.loss_param().normalization() == ::caffe::LossParameter::NONE)
        refuse(layer,
               "normalization is NONE, so its loss is a sum over the samples of a batch, and a "
               "node with fewer samples could not count by them. BATCH_SIZE, FULL and VALID can.");
    }
}

void weigh_losses(net& n, std::uint64_t samples, std::uint64_t batch) {
  const auto part = static_cast<double>(samples) / static_cast<double>(batch);
  for (auto& layer : n.layers)
    for (auto& weight : layer.loss_weights)
      weight = static_cast<float>(part * static_cast<double>(weight));
}

void require_same_parameters(const net& whole, const net& part) {
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    const auto& layer = whole.layers[l];
    for (std::size_t slot = 0; slot < layer.parameter_shapes.size(); ++slot)
      if (layer.parameter_shapes[slot] != part.layers[l].parameter_shapes[slot])
        refuse(layer, "its parameter " + std::to_string(slot) + " is " +
                          to_string(layer.parameter_shapes[slot]) + " with the net's batch and " +
                          to_string(part.layers[l].parameter_shapes[slot]) +
                          " with a share of it, so nodes with different shares cannot train it.");
  }
}

}  // namespace poseidon
