#include "gpu/resizing.hpp"

#include "models/device/resizing_kernel.hpp"

#include <utility>

namespace poseidon::gpu {
namespace {

class gpu_resizing_kernel final : public resizing_kernel {
 public:
  gpu_resizing_kernel(const layer_context& c, kernel_maker make)
      : resizing_kernel(c.layer, c.state.extents, make(c)), context_(c), make_(std::move(make)) {}

 private:
  void make_again(std::unique_ptr<kernel>& inner) override {
    // Work in the stream may still use the memory of the kernel that goes.
    finish(context_.compute());
    inner = nullptr;
    inner = make_(context_);
  }

  void clear_tops() override {
    for (std::size_t i = 0; i < context_.layer.tops.size(); ++i) {
      const gpu_blob& top = context_.top(i);
      clear(context_.compute(), top.data.at(), top.bytes());
    }
  }

  void clear_gradients() override {
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

  const layer_context context_;
  const kernel_maker make_;
};

}  // namespace

std::unique_ptr<kernel> make_resizing(const layer_context& c, kernel_maker make) {
  require_resizable(c.layer);
  return std::make_unique<gpu_resizing_kernel>(c, std::move(make));
}

}  // namespace poseidon::gpu
