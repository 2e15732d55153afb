#include "models/plan/cost.hpp"

#include <algorithm>

namespace poseidon {

namespace {

std::uint64_t values(const shape& s) {
  return static_cast<std::uint64_t>(count(s));
}

/// Every weight of a window is used once per place of it: per output pixel of a convolution, per input pixel of
/// a deconvolution, per row of an inner product.
std::uint64_t products(const net& n, const net_layer& l) {
  const auto& weights = n.parameters[l.parameters[0]].shape;
  const auto& in = n.blobs[l.bottoms[0]].shape;
  const auto& out = n.blobs[l.tops[0]].shape;
  if (l.type == "Convolution" && out.size() > 1)
    return values(weights) * values(out) / static_cast<std::uint64_t>(out[1]);
  if (l.type == "Deconvolution" && in.size() > 1)
    return values(weights) * values(in) / static_cast<std::uint64_t>(in[1]);
  if (l.type == "InnerProduct")
    return values(weights) * values(out) / static_cast<std::uint64_t>(out.back());
  return 0;
}

}  // namespace

layer_flops flops_of(const net& n, std::size_t layer) {
  const auto& l = n.layers[layer];
  if (l.parameters.empty() || l.bottoms.empty() || l.tops.empty()) return {};
  // Several bottoms go through the same weights, one after the other.
  const auto once = 2 * products(n, l) * l.bottoms.size();
  layer_flops f;
  f.forward = once;
  if (!l.needs_backward) return f;
  if (!l.learn.empty() && l.learn[0]) f.backward += once;
  const bool any =
      std::find(l.propagate_down.begin(), l.propagate_down.end(), true) != l.propagate_down.end();
  if (any) f.backward += once;
  return f;
}

}  // namespace poseidon
