#include "models/plan/cost.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

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

/// Layers whose tops are their bottoms under another name.
bool only_renames(const net_layer& l) {
  return l.type == "Split" || l.type == "Reshape" || l.type == "Flatten";
}

/// Whether a diff follows from the tops' diffs alone, with at most a mask that is small beside the blobs.
bool needs_no_values(const net_layer& l) {
  static const std::set<std::string> linear{"Pooling", "Concat", "Slice", "Dropout",
                                            "Power",   "Bias",   "Crop"};
  if (l.type == "Eltwise")
    return l.spec.eltwise_param().operation() == ::caffe::EltwiseParameter::SUM;
  return linear.count(l.type) != 0;
}

std::uint64_t values_of(const net& n, const std::vector<std::size_t>& blobs) {
  std::uint64_t sum = 0;
  for (const auto b : blobs) sum += values(n.blobs[b].shape);
  return sum;
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

layer_bytes bytes_of(const net& n, std::size_t layer) {
  const auto& l = n.layers[layer];
  if (l.bottoms.empty() || l.tops.empty()) return {};
  const auto out = values_of(n, l.tops);
  std::uint64_t diffs = 0;
  for (std::size_t b = 0; b < l.bottoms.size(); ++b)
    if (l.propagate_down[b]) diffs += values(n.blobs[l.bottoms[b]].shape);
  if (only_renames(l)) {  // several names have several diffs, which are added
    const bool adds = l.needs_backward && l.tops.size() > 1;
    return {0, adds ? sizeof(float) * (out + diffs) : 0};
  }
  auto in = values_of(n, l.bottoms);
  std::uint64_t gradients = 0;
  for (std::size_t slot = 0; slot < l.parameters.size(); ++slot) {
    const auto count = values(n.parameters[l.parameters[slot]].shape);
    in += count;
    if (l.learn[slot]) gradients += count;
  }
  const auto backward = out + (needs_no_values(l) ? 0 : in) + gradients + diffs;
  return {sizeof(float) * (in + out), l.needs_backward ? sizeof(float) * backward : 0};
}

}  // namespace poseidon
