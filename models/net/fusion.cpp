#include "models/net/fusion.hpp"

namespace poseidon {

std::optional<following_relu> relu_in_place_after(const net& n, std::size_t layer) {
  const auto next = consumer(n, n.layers[layer].tops[0], layer);
  if (!next) return std::nullopt;
  const net_layer& l = n.layers[*next];
  if (l.type != "ReLU" || l.tops != l.bottoms) return std::nullopt;
  return following_relu{*next, l.spec.relu_param().negative_slope()};
}

std::optional<std::size_t> scale_in_place_after(const net& n, std::size_t layer) {
  const auto next = consumer(n, n.layers[layer].tops[0], layer);
  if (!next) return std::nullopt;
  const net_layer& l = n.layers[*next];
  if (l.type != "Scale" || l.tops != l.bottoms || !scales_channels(n, l)) return std::nullopt;
  return next;
}

bool is_max_pooling_of_relu(const net& n, std::size_t layer) {
  const net_layer& l = n.layers[layer];
  if (l.type != "Pooling" || l.tops.size() != 1 ||
      l.spec.pooling_param().pool() != ::caffe::PoolingParameter::MAX)
    return false;
  const auto before = producer(n, l.bottoms[0], layer);
  return before && n.layers[*before].type == "ReLU" &&
         n.layers[*before].spec.relu_param().negative_slope() == 0;
}

bool scales_channels(const net& n, const net_layer& l) {
  const shape& x = n.blobs[l.bottoms[0]].shape;
  const int axis = l.type == "Scale" ? l.spec.scale_param().axis() : l.spec.bias_param().axis();
  const shape& own =
      l.bottoms.size() > 1 ? n.blobs[l.bottoms[1]].shape : n.parameters[l.parameters.at(0)].shape;
  const auto axes = static_cast<int>(x.size());
  return own.size() == 1 && (axis == 1 || axis + axes == 1);
}

}  // namespace poseidon
