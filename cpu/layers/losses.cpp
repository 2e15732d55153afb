// cpu/layers/losses.cpp - EuclideanLoss, SigmoidCrossEntropyLoss, HingeLoss, MultinomialLogisticLoss.
#include "cpu/axis.hpp"
#include "cpu/layers/labels.hpp"
#include "models/net/hyperbolic_tangent.hpp"

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
        labels_(c.layer, read_label_rules(c.layer, 0, loss_norm::batch)),
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
  static float sigmoid(float x) { return 0.5f * hyperbolic_tangent(0.5f * x) + 0.5f; }

  std::size_t samples_, size_;
  class_labels labels_;
  view x_, target_, dx_, probability_;
  cpu_blob* loss_;
  float normalizer_ = 1;
};

/// Rows of one prediction per sample, whatever its axes: [samples, classes].
along_axis rows_of(const shape& s) {
  const auto samples = s.empty() ? 1 : static_cast<std::size_t>(s[0]);
  const auto values = static_cast<std::size_t>(count(s));
  return {samples, samples == 0 ? 0 : values / samples, 1};
}

/// L1: sum of m = max(0, 1 - t x), L2: sum of m^2; t is 1 for the right class and -1 for the
/// others. Divided by the samples.
class hinge_kernel final : public kernel {
 public:
  explicit hinge_kernel(const layer_context& c)
      : rows_(rows_of(c.bottom_shape(0))),
        labels_(c.layer, read_label_rules(c.layer, rows_.size, loss_norm::batch)),
        squared_(c.layer.spec.hinge_loss_param().norm() == ::caffe::HingeLossParameter::L2),
        margin_(c.bottom(0).values()),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    c.require_no_gradient(1, "labels");
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* label = label_.load();
    double sum = 0;
    for (std::size_t n = 0; n < rows_.outer; ++n) {
      const std::size_t right = labels_.class_of(label[n]);
      for (std::size_t k = 0; k < rows_.size; ++k) {
        const std::size_t at = n * rows_.size + k;
        const float m = std::max(0.0f, 1 + (k == right ? -x[at] : x[at]));
        sum += squared_ ? double{m} * double{m} : double{m};
        margin_.data()[at] = k == right ? -m : m;  // with the sign of the derivative
      }
    }
    loss_->data[0] = static_cast<float>(sum / static_cast<double>(rows_.outer));
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float scale = loss_->diff[0] / static_cast<float>(rows_.outer);
    float* dx = dx_.memory();
    for (std::size_t i = 0; i < margin_.size(); ++i) {
      const float m = margin_.data()[i];
      const float sign = m > 0 ? 1.0f : m < 0 ? -1.0f : 0.0f;
      dx[i] = scale * (squared_ ? 2 * m : sign);
    }
    dx_.store();
  }

 private:
  along_axis rows_;
  class_labels labels_;
  bool squared_;
  buffer margin_;
  view x_, label_, dx_;
  cpu_blob* loss_;
};

/// - sum log p[right] / samples, of probabilities.
class multinomial_kernel final : public kernel {
 public:
  explicit multinomial_kernel(const layer_context& c)
      : rows_(rows_of(c.bottom_shape(0))),
        labels_(c.layer, read_label_rules(c.layer, rows_.size, loss_norm::batch)),
        x_(c.bottom(0), part::data, layout::plain),
        label_(c.bottom(1), part::data, layout::plain),
        loss_(&c.top(0)) {
    c.require_no_gradient(1, "labels");
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const float* label = label_.load();
    double sum = 0;
    for (std::size_t n = 0; n < rows_.outer; ++n) {
      const float p = x[n * rows_.size + labels_.class_of(label[n])];
      sum -= std::log(std::max(p, least_probability));
    }
    loss_->data[0] = static_cast<float>(sum / static_cast<double>(rows_.outer));
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* x = x_.load();
    const float* label = label_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, rows_.outer * rows_.size, 0.0f);
    const float scale = -loss_->diff[0] / static_cast<float>(rows_.outer);
    for (std::size_t n = 0; n < rows_.outer; ++n) {
      const std::size_t at = n * rows_.size + labels_.class_of(label[n]);
      dx[at] = scale / std::max(x[at], least_probability);
    }
    dx_.store();
  }

 private:
  along_axis rows_;
  class_labels labels_;
  view x_, label_, dx_;
  cpu_blob* loss_;
};

}  // namespace

std::unique_ptr<kernel> make_euclidean_loss(const layer_context& c) {
  return std::make_unique<euclidean_kernel>(c);
}

std::unique_ptr<kernel> make_sigmoid_cross_entropy_loss(const layer_context& c) {
  return std::make_unique<sigmoid_cross_entropy_kernel>(c);
}

std::unique_ptr<kernel> make_hinge_loss(const layer_context& c) {
  return std::make_unique<hinge_kernel>(c);
}

std::unique_ptr<kernel> make_multinomial_logistic_loss(const layer_context& c) {
  return std::make_unique<multinomial_kernel>(c);
}

}  // namespace poseidon::cpu
