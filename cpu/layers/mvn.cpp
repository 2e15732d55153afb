// cpu/layers/mvn.cpp - MVN: each image, or each of its channels, brought to mean 0 and variance 1.
#include "cpu/layer.hpp"

#include <cmath>

namespace poseidon::cpu {
namespace {

class mvn_kernel final : public kernel {
 public:
  explicit mvn_kernel(const layer_context& c)
      : normalizes_(c.layer.spec.mvn_param().normalize_variance()),
        eps_(c.layer.spec.mvn_param().eps()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    const image_extent e = image_of(c.bottom_shape(0));
    const bool across = c.layer.spec.mvn_param().across_channels();
    groups_ = e.samples * (across ? 1 : e.channels);
    size_ = e.plane * (across ? e.channels : 1);
    divisor_.resize(groups_, 1.0f);
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    for (std::size_t g = 0; g < groups_; ++g, x += size_, y += size_) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < size_; ++i) sum += double{x[i]};
      const auto mean = static_cast<float>(sum / static_cast<double>(size_));
      for (std::size_t i = 0; i < size_; ++i) {
        y[i] = x[i] - mean;
        squares += double{y[i]} * double{y[i]};
      }
      if (!normalizes_) continue;
      // Caffe adds eps to the deviation, not to the variance.
      divisor_[g] = static_cast<float>(std::sqrt(squares / static_cast<double>(size_))) + eps_;
      for (std::size_t i = 0; i < size_; ++i) y[i] /= divisor_[g];
    }
    y_.store();
  }

  /// dx = (dy - mean(dy) - y mean(dy y)) / divisor, without the last term where nothing was divided.
  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* y = y_.load();
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    for (std::size_t g = 0; g < groups_; ++g, y += size_, dy += size_, dx += size_) {
      double sum = 0, dot = 0;
      for (std::size_t i = 0; i < size_; ++i) {
        sum += double{dy[i]};
        dot += double{dy[i]} * double{y[i]};
      }
      const auto mean = static_cast<float>(sum / static_cast<double>(size_));
      const auto along = normalizes_ ? static_cast<float>(dot / static_cast<double>(size_)) : 0.0f;
      for (std::size_t i = 0; i < size_; ++i) dx[i] = (dy[i] - mean - y[i] * along) / divisor_[g];
    }
    dx_.store();
  }

 private:
  bool normalizes_;
  float eps_;
  std::size_t groups_ = 0, size_ = 0;
  std::vector<float> divisor_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_mvn(const layer_context& c) {
  return std::make_unique<mvn_kernel>(c);
}

}  // namespace poseidon::cpu
