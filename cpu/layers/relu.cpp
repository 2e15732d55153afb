// cpu/layers/relu.cpp - ReLU with Caffe's negative_slope, in any layout, in place or not.
#include "cpu/fusion.hpp"
#include "cpu/layer.hpp"

namespace poseidon::cpu {
namespace {

class relu_kernel final : public kernel {
 public:
  explicit relu_kernel(const layer_context& c)
      : slope_(c.layer.spec.relu_param().negative_slope()),
        forward_done_(c.state.forward_fused[c.index]),
        backward_wanted_(c.wants_diff(0) && !c.state.backward_fused[c.index]),
        bottom_(&c.bottom(0)),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, c.top(0).form),
        dx_(c.bottom(0), part::diff, c.top(0).form) {}

  void forward(const pass&) override {
    if (forward_done_) return;
    const float* x = x_.load();
    float* y = top_->data;
    const float slope = slope_;
    const std::size_t size = top_->stored();
    for (std::size_t i = 0; i < size; ++i) {
      const float v = x[i];
      y[i] = v > 0 ? v : slope * v;
    }
  }

  /// y > 0 says the same as x > 0 (for slopes that are not negative, as Caffe assumes in place).
  void backward(const pass&) override {
    if (!backward_wanted_) return;
    const float* y = bottom_ == top_ || slope_ >= 0 ? top_->data : x_.load();
    const float* dy = top_->diff;
    float* dx = dx_.memory();
    const float slope = slope_;
    const std::size_t size = top_->stored();
    for (std::size_t i = 0; i < size; ++i) dx[i] = dy[i] * (y[i] > 0 ? 1.0f : slope);
    dx_.store();
  }

 private:
  float slope_;
  bool forward_done_, backward_wanted_;
  cpu_blob *bottom_, *top_;
  view x_, dx_;
};

}  // namespace

std::optional<following_relu> relu_in_place_after(const layer_context& c) {
  if (c.state.options.keep_all_diffs) return std::nullopt;  // somebody looks at every blob
  return poseidon::relu_in_place_after(c.state.graph, c.index);
}

std::unique_ptr<kernel> make_relu(const layer_context& c) {
  return std::make_unique<relu_kernel>(c);
}

}  // namespace poseidon::cpu
