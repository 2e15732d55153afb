#include "models/net/refusal.hpp"

namespace poseidon {

void refuse_layer(const net_layer& layer, const std::string& text) {
  const std::string what = "layer \"" + layer.name + "\" (" + layer.type + "): " + text;
  if (layer.where.file.empty()) throw spec_error(what);
  throw spec_error(layer.where, what);
}

void refuse_gradient(const net_layer& layer, std::size_t i, const std::string& what) {
  refuse_layer(layer, "the net wants the gradient of its bottom \"" +
                          layer.spec.bottom(static_cast<int>(i)) + "\", but that bottom holds " +
                          what +
                          ", which have none. Give the layer propagate_down: false for it, or "
                          "remove force_backward.");
}

}  // namespace poseidon
