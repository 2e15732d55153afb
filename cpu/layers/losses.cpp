// cpu/layers/losses.cpp - EuclideanLoss and SigmoidCrossEntropyLoss.
#include "cpu/layers/labels.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon::cpu {
namespace {

/// sum (a - b)^2 / (2 N), N the first axis.
class euclidean_kernel final : public kernel {
 public:
  explicit euclidean_kernel(const layer_context& c)
      : samples_(c.bottom_shape(0).empty() ? 1.0f : static_cast<float>(c.bottom_shape(0)[0])),
        difference_(c.bottom(0).values()),
        a_(c.bottom(0), part::data, layout::plain),
        b_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    if (c.wants_diff(0)) da_ = view(c.bottom(0), part::diff, layout::plain);
    if (c.wants_diff(1)) db_ = view(c.bottom(1), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* a = a_.load();
    const float* b = b_.load();
    float sum = 0;
    for (std::size_t i = 0; i < difference_.size(); ++i) {
      const float d = a[i] - b[i];
      difference_.data()[i] = d;
      sum += d * d;
    }
    loss_->data[0] = sum / samples_ / 2;
  }

  void backward(const pass&) override {
    const float scale = loss_->diff == nullptr ? 0 : loss_->diff[0] / samples_;
    write(da_, scale);
    write(db_, -scale);
  }

 private:
  void write(view& to, float scale) {
    if (!to.exists()) return;
    float* dx = to.memory();
    for (std::size_t i = 0; i < difference_.size(); ++i) dx[i] = scale * difference_.data()[i];
    to.store();
  }

  float samples_;
  buffer difference_;
  view a_, b_, da_, db_;
  cpu_blob* loss_;
};

/// Cross entropy of sigmoid(x) against targets in [0, 1].
class sigmoid_cross_entropy_kernel final : public kernel {
 public:
  explicit sigmoid_cross_entropy_kernel(const layer_context& c)
      : samples_(c.bottom_shape(0).empty() ? 1 : static_cast<std::size_t>(c.bottom_shape(0)[0])),
        size_(c.bottom(0).values()),
        labels_(c, 0, normalization::BATCH_SIZE),
        x_(c.bottom(0), part::data, layout::plain),
        target_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
    c.require_no_gradient(1, "targets");
    if (c.layer.tops.size() > 1) probability_ = view(c.top(1), part::data, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* t = target_.load();
    float loss = 0;
    std::size_t valid = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (labels_.is_ignored(t[i])) continue;
      ++valid;
      const float positive = x[i] >= 0 ? 1.0f : 0.0f;  // so that exp never overflows
      loss -= x[i] * (t[i] - positive) - std::log(1 + std::exp(x[i] - 2 * x[i] * positive));
    }
    normalizer_ = labels_.normalizer(samples_, size_ / std::max<std::size_t>(1, samples_), valid);
    loss_->data[0] = loss / normalizer_;
    if (!probability_.exists()) return;
    for (std::size_t i = 0; i < size_; ++i) probability_.memory()[i] = sigmoid(x[i]);
    probability_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* x = x_.load();
    const float* t = target_.load();
    float* dx = dx_.memory();
    const float scale = loss_->diff[0] / normalizer_;
    for (std::size_t i = 0; i < size_; ++i) {
      dx[i] = labels_.is_ignored(t[i]) ? 0 : (sigmoid(x[i]) - t[i]) * scale;
    }
    dx_.store();
  }

 private:
  static float sigmoid(float x) { return 0.5f * std::tanh(0.5f * x) + 0.5f; }

  std::size_t samples_, size_;
  label_rules labels_;
  view x_, target_, dx_, probability_;
  cpu_blob* loss_;
  float normalizer_ = 1;
};

}  // namespace

std::unique_ptr<kernel> make_euclidean_loss(const layer_context& c) {
  return std::make_unique<euclidean_kernel>(c);
}

std::unique_ptr<kernel> make_sigmoid_cross_entropy_loss(const layer_context& c) {
  return std::make_unique<sigmoid_cross_entropy_kernel>(c);
}

}  // namespace poseidon::cpu
