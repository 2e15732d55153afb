#include "gpu/resizing.hpp"

#include "models/net/layer_rules.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::gpu {
namespace {

class resizing_kernel final : public kernel {
 public:
  resizing_kernel(const layer_context& c,
                  std::function<std::unique_ptr<kernel>(const layer_context&)> make)
      : context_(c), make_(std::move(make)), made_for_(bottom_shapes()), inner_(make_(c)) {}

  void forward(const pass& p) override {
    if (std::vector<shape> now = bottom_shapes(); now != made_for_) resize(std::move(now));
    if (!is_empty_) return inner_->forward(p);
    for (std::size_t i = 0; i < context_.layer.tops.size(); ++i) {
      const gpu_blob& top = context_.top(i);
      clear(context_.compute(), top.data.at(), top.bytes());
    }
  }

  void backward(const pass& p) override {
    if (!is_empty_) return inner_->backward(p);
    for (std::size_t i = 0; i < context_.layer.bottoms.size(); ++i) {
      const gpu_blob& bottom = context_.bottom(i);
      if (context_.wants_diff(i)) clear(context_.compute(), bottom.diff.at(), bottom.bytes());
    }
    for (std::size_t s = 0; s < context_.layer.parameters.size(); ++s) {
      gradient_slot g = context_.gradient(s);
      if (!g.wanted()) continue;
      clear(context_.compute(), g.begin(), g.values() * sizeof(float));
      g.end();
    }
  }

 private:
  [[nodiscard]] std::vector<shape> bottom_shapes() const {
    std::vector<shape> all;
    for (std::size_t i = 0; i < context_.layer.bottoms.size(); ++i)
      all.push_back(context_.bottom_shape(i));
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
    // What is enqueued still uses the memory of the kernel that goes.
    event over(context_.state.device);
    record(over, context_.compute());
    synchronise(over);
    inner_ = nullptr;
    inner_ = make_(context_);
  }

  const layer_context context_;
  const std::function<std::unique_ptr<kernel>(const layer_context&)> make_;
  std::vector<shape> made_for_;
  std::unique_ptr<kernel> inner_;
  bool is_empty_ = false;
};

}  // namespace

std::unique_ptr<kernel> make_resizing(
    const layer_context& c, std::function<std::unique_ptr<kernel>(const layer_context&)> make) {
  if (c.layer.type == "HDF5Output")
    c.refuse("it begins its file anew when the batch changes, as a Filter before it lets it.");
  return std::make_unique<resizing_kernel>(c, std::move(make));
}

}  // namespace poseidon::gpu
