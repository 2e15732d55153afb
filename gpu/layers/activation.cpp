// gpu/layers/activation.cpp - layers that map each value by itself: y = f(x), dx = dy * f'; and Dropout.
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

class activation_kernel final : public kernel {
 public:
  activation_kernel(const layer_context& c, const activation& f)
      : compute_(c.compute()),
        f_(f),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        forward_done_(c.state.forward_done[c.index]),
        backward_wanted_(c.wants_diff(0) && !c.state.backward_done[c.index]) {
    // A ReLU in place asks for the sign of y even where a negative slope has turned it: so does Caffe's.
    if (c.in_place() && f.needs_x() && f.what != activation::kind::relu && backward_wanted_)
      kept_ = c.allocate(top_.bytes());
  }

  void forward(const pass&) override {
    if (forward_done_) return;
    if (kept_.size() != 0)
      copy_values(compute_, top_.values(), bottom_.data, values_in(kept_, bottom_));
    apply(compute_, f_, top_.values(), bottom_.data, top_.data);
  }

  void backward(const pass&) override {
    if (!backward_wanted_) return;
    const values x = kept_.size() != 0 ? values_in(kept_, bottom_) : bottom_.data;
    apply_derivative(compute_, f_, top_.values(), x, top_.data, top_.diff, bottom_.diff);
  }

 private:
  stream& compute_;
  activation f_;
  const gpu_blob &bottom_, &top_;
  bool forward_done_, backward_wanted_;
  device_memory kept_;  // x, where the layer works in place and needs it
};

/// Random factors from (seed, layer, global sample) when training, identity in TEST. backward() draws them again,
/// which takes less time than to store and to read them.
class dropout_kernel final : public kernel {
 public:
  explicit dropout_kernel(const layer_context& c)
      : compute_(c.compute()),
        layer_(static_cast<std::uint32_t>(c.index)),
        ratio_(c.layer.spec.dropout_param().dropout_ratio()),
        active_(c.training()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)) {
    if (!(ratio_ >= 0 && ratio_ <= 1))
      c.refuse("dropout_ratio is " + std::to_string(ratio_) + ", it has to lie in [0, 1].");
  }

  void forward(const pass& p) override { pass_on(p, bottom_.data, top_.data); }
  void backward(const pass& p) override {
    if (backward_wanted_) pass_on(p, top_.diff, bottom_.diff);
  }

 private:
  void pass_on(const pass& p, const float* from, float* to) {
    const shape& s = *bottom_.extents;
    const std::size_t samples = s.empty() ? 1 : static_cast<std::size_t>(s[0]);
    if (active_ && samples > 0) {
      drop_out(compute_, {p.seed, p.first_sample, layer_, ratio_}, samples,
               bottom_.values() / samples, from, to);
    } else if (from != to) {
      copy_within_device(compute_, to, from, bottom_.values() * sizeof(float));
    }
  }

  stream& compute_;
  std::uint32_t layer_;
  float ratio_;
  bool active_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
};

}  // namespace

std::unique_ptr<kernel> make_activation(const layer_context& c) {
  return std::make_unique<activation_kernel>(c, resolve_activation(c.layer));
}

std::unique_ptr<kernel> make_dropout(const layer_context& c) {
  return std::make_unique<dropout_kernel>(c);
}

}  // namespace poseidon::gpu
