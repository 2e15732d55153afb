#include "cpu/resizing.hpp"

#include "models/net/layer_rules.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

class resizing_kernel final : public kernel {
 public:
  explicit resizing_kernel(const layer_context& c)
      : context_(c), made_for_(bottom_shapes()), inner_(find_layer_type(c.layer.type)->make(c)) {}

  void forward(const pass& p) override {
    if (std::vector<shape> now = bottom_shapes(); now != made_for_) resize(std::move(now));
    if (!is_empty_) return inner_->forward(p);
    for (std::size_t i = 0; i < context_.layer.tops.size(); ++i) {
      cpu_blob& top = context_.top(i);
      std::fill_n(top.data, top.stored(), 0.0f);
    }
  }

  void backward(const pass& p) override {
    if (!is_empty_) return inner_->backward(p);
    for (std::size_t i = 0; i < context_.layer.bottoms.size(); ++i) {
      cpu_blob& bottom = context_.bottom(i);
      if (context_.wants_diff(i)) std::fill_n(bottom.diff, bottom.stored(), 0.0f);
    }
    for (std::size_t s = 0; s < context_.layer.parameters.size(); ++s) {
      gradient_slot g = context_.gradient(s);
      if (!g.wanted()) continue;
      const auto& extents = context_.state.graph.parameters[context_.layer.parameters[s]].shape;
      std::fill_n(g.begin(), static_cast<std::size_t>(count(extents)), 0.0f);
      g.end();
    }
  }

  void factors(std::span<float> u, std::span<float> v) override {
    if (!is_empty_) return inner_->factors(u, v);
    std::fill(u.begin(), u.end(), 0.0f);
    std::fill(v.begin(), v.end(), 0.0f);
  }

 private:
  [[nodiscard]] std::vector<shape> bottom_shapes() const {
    std::vector<shape> all;
    for (std::size_t i = 0; i < context_.layer.bottoms.size(); ++i) {
      all.push_back(context_.bottom_shape(i));
    }
    return all;
  }

  void resize(std::vector<shape> bottoms) {
    const net_layer& l = context_.layer;
    made_for_ = std::move(bottoms);
    is_empty_ = std::any_of(made_for_.begin(), made_for_.end(),
                            [](const shape& s) { return count(s) == 0; });
    const layer_question q{l.spec, l.where, made_for_, l.tops.size()};
    const layer_answer a = poseidon::find_layer_type(l.type)->rule(q);
    for (std::size_t t = 0; t < l.tops.size(); ++t) context_.state.extents[l.tops[t]] = a.tops[t];
    if (is_empty_) return;
    inner_ = find_layer_type(l.type)->make(context_);
    context_.state.dnnl.allocate();
  }

  layer_context context_;
  std::vector<shape> made_for_;
  std::unique_ptr<kernel> inner_;
  bool is_empty_ = false;
};

}  // namespace

std::unique_ptr<kernel> make_resizing(const layer_context& c) {
  if (c.layer.type == "HDF5Output") {
    c.refuse("it begins its file anew when the batch changes, as a Filter before it lets it.");
  }
  return std::make_unique<resizing_kernel>(c);
}

}  // namespace poseidon::cpu
