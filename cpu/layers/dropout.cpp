// cpu/layers/dropout.cpp - Dropout: factors from (seed, layer, global sample) when training, identity in
// TEST.
#include "cpu/kernels/dropout_mask.hpp"
#include "cpu/layer.hpp"

#include <cstring>

namespace poseidon::cpu {
namespace {

class dropout_kernel final : public kernel {
 public:
  explicit dropout_kernel(const layer_context& c)
      : layer_(static_cast<std::uint32_t>(c.index)),
        ratio_(c.layer.spec.dropout_param().dropout_ratio()),
        active_(c.training()),
        in_place_(c.in_place()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    if (!(ratio_ >= 0 && ratio_ <= 1)) {
      c.refuse("dropout_ratio is " + std::to_string(ratio_) + ", it has to lie in [0, 1].");
    }
    size_ = c.bottom(0).values();
    samples_ = c.bottom_shape(0).empty() ? 1 : static_cast<std::size_t>(c.bottom_shape(0)[0]);
    if (active_) factors_ = buffer(size_);
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass& p) override {
    if (!active_) {
      if (!in_place_) copy(x_.load(), y_);
      return;
    }
    const std::size_t per_sample = size_ / samples_;
    for (std::size_t n = 0; n < samples_; ++n) {
      dropout_factors(p.seed, layer_, p.first_sample + n, ratio_, per_sample,
                      factors_.data() + n * per_sample);
    }
    scale(x_.load(), y_);
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    if (active_) {
      scale(dy_.load(), dx_);
    } else if (!in_place_) {
      copy(dy_.load(), dx_);
    }
  }

 private:
  void copy(const float* from, view& to) {
    std::memcpy(to.memory(), from, size_ * sizeof(float));
    to.store();
  }
  void scale(const float* from, view& to) {
    const float* f = factors_.data();
    float* y = to.memory();
    for (std::size_t i = 0; i < size_; ++i) y[i] = from[i] * f[i];
    to.store();
  }

  std::uint32_t layer_;
  float ratio_;
  bool active_, in_place_;
  std::size_t size_ = 0, samples_ = 1;
  buffer factors_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_dropout(const layer_context& c) {
  return std::make_unique<dropout_kernel>(c);
}

}  // namespace poseidon::cpu
