#include "gpu/residual.hpp"

#include "gpu/layer.hpp"
#include "gpu/normalization.hpp"
#include "models/net/fusion.hpp"

#include <algorithm>

namespace poseidon::gpu {
namespace {

class finder {
 public:
  explicit finder(const replica_state& state)
      : state_(state), net_(state.graph), resized_(resized_blobs(net_)) {}

  [[nodiscard]] std::optional<residual> at(std::size_t l) const {
    const net_layer& sum = net_.layers[l];
    if (!is_sum_of_two(sum)) return std::nullopt;
    const auto relu = relu_in_place_after(net_, l);
    if (!relu || relu->slope == 1 || !as_they_are(l, sum.bottoms) || !as_they_are(l, sum.tops))
      return std::nullopt;
    residual r;
    take_split(r, l, relu->layer);
    share(r, sum);
    if (!r.split && !r.one_gradient) return std::nullopt;
    return r;
  }

 private:
  bool is_sum_of_two(const net_layer& l) const {
    return l.type == "Eltwise" && l.needs_backward &&
           l.spec.eltwise_param().operation() == ::caffe::EltwiseParameter::SUM &&
           l.bottoms.size() == 2 && l.tops[0] != l.bottoms[0] && l.propagate_down.size() == 2 &&
           l.propagate_down[0] && l.propagate_down[1];
  }

  /// Does a layer have these blobs where and as the net has them?
  bool as_they_are(std::size_t layer, const std::vector<std::size_t>& blobs) const {
    return std::all_of(blobs.begin(), blobs.end(), [&](std::size_t b) {
      return !resized_[b] && state_.blobs[b].order == state_.orders[layer];
    });
  }

  void take_split(residual& r, std::size_t sum, std::size_t relu) const {
    const auto next = consumer(net_, net_.layers[relu].tops[0], relu);
    if (!next || net_.layers[*next].type != "Split" || !as_they_are(sum, net_.layers[*next].tops))
      return;
    r.gradients = gradients_of_split(net_, *next);
    if (r.gradients.size() == 2) r.split = next;
  }

  void share(residual& r, const net_layer& sum) const {
    const auto& p = sum.spec.eltwise_param();
    if (p.coeff_size() == 2 && p.coeff(0) != p.coeff(1)) return;
    for (const std::size_t b : sum.bottoms)
      if (!shares(r, b)) return;
    r.one_gradient = true;
  }

  bool shares(residual& r, std::size_t blob) const {
    const auto from = producer(net_, blob, net_.layers.size());
    const net_layer& last = net_.layers[*from];
    if (last.type == "Split" && writers_of(net_, blob) == 1) {
      r.split_tops.push_back(blob);
      return true;
    }
    if (last.type != "Scale" || !as_they_are(*from, {blob})) return false;
    const auto before = producer(net_, blob, *from);
    if (!before || net_.layers[*before].type != "BatchNorm") return false;
    if (!as_they_are(*before, {blob})) return false;
    const auto scale = scale_to_share_with(state_, *before);
    if (!scale || scale->layer != *from) return false;
    r.normalizing.insert(r.normalizing.end(), {*before, *from});
    return true;
  }

  const replica_state& state_;
  const net& net_;
  std::vector<bool> resized_;
};

}  // namespace

std::vector<std::size_t> gradients_of_split(const net& n, std::size_t layer) {
  std::vector<std::size_t> found;
  for (const std::size_t blob : n.layers[layer].tops) {
    const auto next = consumer(n, blob, layer);
    if (!next) continue;
    const net_layer& l = n.layers[*next];
    for (std::size_t b = 0; b < l.bottoms.size() && b < l.propagate_down.size(); ++b)
      if (l.bottoms[b] == blob && l.propagate_down[b]) found.push_back(blob);
  }
  return found;
}

std::vector<std::optional<residual>> find_residuals(const replica_state& state) {
  std::vector<std::optional<residual>> found(state.graph.layers.size());
  if (!state.has_backward() || state.options.keep_all_diffs) return found;
  const finder f(state);
  for (std::size_t l = 0; l < found.size(); ++l) found[l] = f.at(l);
  return found;
}

void share_gradients(replica_state& state) {
  const net& n = state.graph;
  for (std::size_t l = 0; l < n.layers.size(); ++l) {
    const auto& r = state.residuals[l];
    if (!r || !r->one_gradient) continue;
    for (const std::size_t of : r->normalizing) {
      gpu_blob beside = state.blobs[n.layers[of].tops[0]];
      beside.diff = state.blobs[n.layers[l].tops[0]].diff;
      state.first_tops[of] = beside;
    }
  }
}

}  // namespace poseidon::gpu
