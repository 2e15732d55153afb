#include "models/device/resizing_kernel.hpp"

#include "models/net/layer_rules.hpp"
#include "models/net/refusal.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

resizing_kernel::resizing_kernel(const net_layer& layer, std::vector<shape>& extents,
                                 std::unique_ptr<kernel> first)
    : layer_(layer), extents_(extents), made_for_(bottom_shapes()), inner_(std::move(first)) {}

void resizing_kernel::forward(const pass& p) {
  if (std::vector<shape> now = bottom_shapes(); now != made_for_) resize(std::move(now));
  if (is_empty_)
    clear_tops();
  else
    inner_->forward(p);
}

void resizing_kernel::backward(const pass& p) {
  if (is_empty_)
    clear_gradients();
  else
    inner_->backward(p);
}

std::vector<shape> resizing_kernel::bottom_shapes() const {
  std::vector<shape> all;
  for (const std::size_t b : layer_.bottoms) all.push_back(extents_[b]);
  return all;
}

void resizing_kernel::resize(std::vector<shape> bottoms) {
  made_for_ = std::move(bottoms);
  is_empty_ =
      std::any_of(made_for_.begin(), made_for_.end(), [](const shape& s) { return count(s) == 0; });
  const layer_question q{layer_.spec, layer_.where, made_for_, layer_.tops.size()};
  const layer_answer a = find_layer_type(layer_.type)->rule(q);
  for (std::size_t t = 0; t < layer_.tops.size(); ++t) extents_[layer_.tops[t]] = a.tops[t];
  if (!is_empty_) make_again(inner_);
}

void require_resizable(const net_layer& layer) {
  if (layer.type == "HDF5Output")
    refuse_layer(layer,
                 "it begins its file anew when the batch changes, as a Filter before it "
                 "lets it.");
}

}  // namespace poseidon
