#include "cpu/resizing.hpp"

#include "models/device/resizing_kernel.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

class cpu_resizing_kernel final : public resizing_kernel {
 public:
  explicit cpu_resizing_kernel(const layer_context& c)
      : resizing_kernel(c.layer, c.state.extents, find_layer_type(c.layer.type)->make(c)),
        context_(c) {}

  void factors(std::span<float> u, std::span<float> v) override {
    if (!is_empty()) return inner().factors(u, v);
    std::fill(u.begin(), u.end(), 0.0f);
    std::fill(v.begin(), v.end(), 0.0f);
  }

 private:
  void make_again(std::unique_ptr<kernel>& inner) override {
    inner = find_layer_type(context_.layer.type)->make(context_);
    context_.state.dnnl.allocate();
  }

  void clear_tops() override {
    for (std::size_t i = 0; i < context_.layer.tops.size(); ++i) {
      cpu_blob& top = context_.top(i);
      std::fill_n(top.data, top.stored(), 0.0f);
    }
  }

  void clear_gradients() override {
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

  const layer_context context_;
};

}  // namespace

std::unique_ptr<kernel> make_resizing(const layer_context& c) {
  require_resizable(c.layer);
  return std::make_unique<cpu_resizing_kernel>(c);
}

}  // namespace poseidon::cpu
