// cpu/layers/rows.cpp - layers over rows of values: Reduction (one value of many), ArgMax (the places of the largest), MVN
// (each image, or each of its channels, brought to mean 0 and variance 1).
#include "cpu/axis.hpp"
#include "cpu/layer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace poseidon::cpu {
namespace {

using reduction = ::caffe::ReductionParameter;

/// SUM, ASUM, SUMSQ or MEAN over all axes from one on, times a coefficient.
class reduction_kernel final : public kernel {
 public:
  explicit reduction_kernel(const layer_context& c)
      : how_(c.layer.spec.reduction_param().operation()),
        coefficient_(c.layer.spec.reduction_param().coeff()),
        outer_(c.top(0).values()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    size_ = outer_ == 0 ? 0 : c.bottom(0).values() / outer_;
    if (how_ == reduction::MEAN) coefficient_ /= static_cast<float>(size_);
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    for (std::size_t o = 0; o < outer_; ++o) {
      double sum = 0;
      for (std::size_t i = o * size_; i < (o + 1) * size_; ++i) {
        const double v = double{x[i]};
        sum += how_ == reduction::ASUM ? std::fabs(v) : how_ == reduction::SUMSQ ? v * v : v;
      }
      y[o] = static_cast<float>(sum * double{coefficient_});
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* x = x_.load();
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    for (std::size_t o = 0; o < outer_; ++o) {
      const float k = coefficient_ * dy[o];
      for (std::size_t i = o * size_; i < (o + 1) * size_; ++i) dx[i] = k * slope(x[i]);
    }
    dx_.store();
  }

 private:
  [[nodiscard]] float slope(float x) const {
    if (how_ == reduction::ASUM) return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
    return how_ == reduction::SUMSQ ? 2 * x : 1;
  }

  reduction::ReductionOp how_;
  float coefficient_;
  std::size_t outer_, size_ = 0;
  view x_, y_, dx_, dy_;
};

/// The top_k largest along one axis, or of a whole sample: their places, their values, or both. Of
/// equal values the later one comes first.
class argmax_kernel final : public forward_only {
 public:
  explicit argmax_kernel(const layer_context& c)
      : has_axis_(c.layer.spec.argmax_param().has_axis()),
        values_too_(c.layer.spec.argmax_param().out_max_val()),
        top_k_(c.layer.spec.argmax_param().top_k()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    c.require_no_gradient(0, "what ArgMax chooses from");
    const shape& s = c.bottom_shape(0);
    const auto samples = s.empty() ? 1 : static_cast<std::size_t>(s[0]);
    axis_ = has_axis_ ? split_at(s, c.layer.spec.argmax_param().axis())
                      : along_axis{samples, c.bottom(0).values() / samples, 1};
    candidates_.resize(axis_.size);
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    float* y = y_.memory();
    for (std::size_t o = 0; o < axis_.outer; ++o) {
      for (std::size_t i = 0; i < axis_.inner; ++i) {
        for (std::size_t k = 0; k < axis_.size; ++k) {
          candidates_[k] = {x[(o * axis_.size + k) * axis_.inner + i], k};
        }
        std::partial_sort(candidates_.begin(),
                          candidates_.begin() + static_cast<std::ptrdiff_t>(top_k_),
                          candidates_.end(), std::greater<>());
        for (std::size_t k = 0; k < top_k_; ++k) write(y, o, i, k);
      }
    }
    y_.store();
  }

 private:
  void write(float* y, std::size_t o, std::size_t i, std::size_t k) const {
    const auto& [value, place] = candidates_[k];
    if (has_axis_) {
      y[(o * top_k_ + k) * axis_.inner + i] = values_too_ ? value : static_cast<float>(place);
      return;
    }
    const std::size_t first = o * top_k_ * (values_too_ ? 2 : 1);
    y[first + k] = static_cast<float>(place);
    if (values_too_) y[first + top_k_ + k] = value;
  }

  bool has_axis_, values_too_;
  std::size_t top_k_;
  along_axis axis_;
  view x_, y_;
  std::vector<std::pair<float, std::size_t>> candidates_;
};

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

std::unique_ptr<kernel> make_reduction(const layer_context& c) {
  return std::make_unique<reduction_kernel>(c);
}

std::unique_ptr<kernel> make_argmax(const layer_context& c) {
  return std::make_unique<argmax_kernel>(c);
}

std::unique_ptr<kernel> make_mvn(const layer_context& c) {
  return std::make_unique<mvn_kernel>(c);
}

}  // namespace poseidon::cpu
