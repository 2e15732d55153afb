// gpu/layers/rows.cpp - layers over rows of values: Reduction, MVN, ArgMax.
#include "gpu/kernels/rows.hpp"

#include "gpu/layers/layers.hpp"

namespace poseidon::gpu {
namespace {

using reduction = ::caffe::ReductionParameter;

/// Everything from one axis on becomes one number.
class reduction_kernel final : public kernel {
 public:
  explicit reduction_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        rows_(top_.values()),
        size_(rows_ == 0 ? 0 : bottom_.values() / rows_),
        factor_(c.layer.spec.reduction_param().coeff()) {
    const auto how = c.layer.spec.reduction_param().operation();
    if (how == reduction::ASUM) sum_ = row_sum::absolute;
    if (how == reduction::SUMSQ) sum_ = row_sum::squares;
    if (how == reduction::MEAN) factor_ /= static_cast<float>(size_);
  }
  void forward(const pass&) override {
    sum_rows(compute_, sum_, rows_, size_, factor_, bottom_.data, top_.data);
  }
  void backward(const pass&) override {
    if (backward_wanted_)
      sum_rows_backward(compute_, sum_, rows_, size_, factor_, bottom_.data, top_.diff,
                        bottom_.diff);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  std::size_t rows_, size_;
  float factor_;
  row_sum sum_ = row_sum::values;
};

/// Each channel of each sample, or each sample, to mean 0 and, if wanted, deviation 1.
class mvn_kernel final : public kernel {
 public:
  explicit mvn_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        divides_(c.layer.spec.mvn_param().normalize_variance()),
        eps_(c.layer.spec.mvn_param().eps()),
        rows_(rows_of(c)),
        size_(rows_ == 0 ? 0 : bottom_.values() / rows_),
        own_(c.allocate(3 * rows_ * sizeof(float))) {}
  void forward(const pass&) override {
    standardize_rows(compute_, rows_, size_, divides_, eps_, bottom_.data, means(), divisor(),
                     top_.data);
  }
  void backward(const pass&) override {
    if (backward_wanted_)
      standardize_rows_backward(compute_, rows_, size_, divides_, top_.data, divisor(), top_.diff,
                                means(), bottom_.diff);
  }

 private:
  static std::size_t rows_of(const layer_context& c) {
    const shape& s = c.bottom_shape(0);
    const std::size_t axes = c.layer.spec.mvn_param().across_channels() ? 1 : 2;
    return static_cast<std::size_t>(count(s, 0, std::min(axes, s.size())));
  }
  [[nodiscard]] float* divisor() const { return own_.floats(); }
  [[nodiscard]] float* means() const { return own_.floats() + rows_; }

  stream& compute_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_, divides_;
  float eps_;
  std::size_t rows_, size_;
  device_memory own_;
};

/// The top_k largest along one axis, or of a whole sample: their places, their values, or both.
class argmax_kernel final : public forward_only {
 public:
  explicit argmax_kernel(const layer_context& c)
      : compute_(c.compute()), bottom_(c.bottom(0)), top_(c.top(0)) {
    c.require_no_gradient(0, "what ArgMax chooses from");
    const auto& p = c.layer.spec.argmax_param();
    const shape& s = c.bottom_shape(0);
    const std::size_t samples = s.empty() ? 1 : static_cast<std::size_t>(s[0]);
    const class_shape along = p.has_axis() ? along_axis(s, p.axis())
                                           : class_shape{samples, bottom_.values() / samples, 1};
    // With an axis the values stand instead of the places, without one behind the places of each sample.
    const bool both = p.out_max_val() && !p.has_axis();
    places_ = {along.outer, along.classes, along.inner, p.top_k(), both ? 2u : 1u};
    first_ = p.out_max_val() && p.has_axis() ? nullptr : top_.data;
    values_ = both ? top_.data + p.top_k() : p.out_max_val() ? top_.data : nullptr;
  }
  void forward(const pass&) override {
    find_largest(compute_, places_, bottom_.data, first_, values_);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &top_;
  largest_places places_;
  float *first_, *values_;
};

}  // namespace

std::unique_ptr<kernel> make_reduction(const layer_context& c) {
  return std::make_unique<reduction_kernel>(c);
}

std::unique_ptr<kernel> make_mvn(const layer_context& c) {
  return std::make_unique<mvn_kernel>(c);
}

std::unique_ptr<kernel> make_argmax(const layer_context& c) {
  return std::make_unique<argmax_kernel>(c);
}

}  // namespace poseidon::gpu
