// gpu/layers/scale.cpp - Scale, Bias and PReLU: layers with numbers of their own for each channel.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/copies.hpp"
#include "gpu/layers/layers.hpp"
#include "gpu/normalization.hpp"
#include "models/net/factor_axes.hpp"
#include "models/net/fusion.hpp"

namespace poseidon::gpu {
namespace {

/// The axes before the factor's (the bias's, for Bias), its own, and those behind, in NCHW.
channel_shape resolve(const layer_context& c) {
  if (channels_last(c.order())) return c.channels_of(c.bottom_shape(0));
  const shape& own = c.layer.bottoms.size() > 1
                         ? c.bottom_shape(1)
                         : c.state.graph.parameters[c.layer.parameters.at(0)].shape;
  const auto axes = resolve_factor_axes(c.layer, c.bottom_shape(0), own);
  return {axes.before, axes.own, axes.behind};
}

/// One of the two operands: learned, or a second bottom; nothing at all if there is none.
struct operand {
  const float* values = nullptr;
  gradient_slot gradient;
  float* diff = nullptr;  ///< the second bottom's

  [[nodiscard]] bool wanted() const { return gradient.wanted() || diff != nullptr; }
  [[nodiscard]] float* begin() { return gradient.wanted() ? gradient.begin() : diff; }
  void end() {
    if (gradient.wanted()) gradient.end();
  }
};

/// y = x * factor + bias, with one factor and bias for each place in a run of x's axes.
class scale_kernel final : public kernel {
 public:
  explicit scale_kernel(const layer_context& c)
      : compute_(c.compute()),
        channels_(resolve(c)),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)) {
    const bool scale = c.layer.type == "Scale";
    operand& first = scale ? factor_ : bias_;
    std::size_t slot = 0;
    if (c.layer.bottoms.size() > 1) {
      first.values = c.bottom(1).data;
      if (c.wants_diff(1)) first.diff = c.bottom(1).diff;
    } else {
      first.values = c.parameter(slot);
      first.gradient = c.gradient(slot++);
    }
    if (scale && c.layer.spec.scale_param().bias_term()) {
      bias_.values = c.parameter(slot);
      bias_.gradient = c.gradient(slot);
    }
    pair_with_normalization(c);
    if (pair_ == nullptr && c.in_place() && factor_.wanted()) kept_ = c.allocate(top_.bytes());
    if (factor_.wanted() || bias_.wanted() || pair_ != nullptr)
      scratch_ = c.allocate(sum_scratch_bytes(channels_));
  }

  void forward(const pass&) override {
    if (pair_ != nullptr && pair_->added) return;
    if (pair_ != nullptr)
      return normalize_scaled(compute_, channels_, pair_->x, pair_->statistics, factor_.values,
                              bias_.values, relu_slope_, values_in(pair_->copy, top_), top_.data);
    if (kept_.size() != 0)
      copy_values(compute_, top_.values(), bottom_.data, values_in(kept_, bottom_));
    scale_channels(compute_, channels_, bottom_.data, factor_.values, bias_.values, top_.data);
  }

  void backward(const pass&) override {
    if (pair_ != nullptr) return sum_for_both();
    if (factor_.wanted()) {
      const values x = kept_.size() != 0 ? values_in(kept_, bottom_) : bottom_.data;
      dot_channels(compute_, channels_, top_.diff, x, factor_.begin(), scratch_.bytes());
      factor_.end();
    }
    if (bias_.wanted()) {
      sum_channels(compute_, channels_, top_.diff, bias_.begin(), scratch_.bytes());
      bias_.end();
    }
    if (!backward_wanted_ || (factor_.values == nullptr && bottom_.diff == top_.diff)) return;
    scale_channels(compute_, channels_, top_.diff, factor_.values, nullptr, bottom_.diff);
  }

 private:
  /// BatchNorm has the other half: then this layer works on its bottom, and as the ReLU behind it where that lets nothing
  /// negative through.
  void pair_with_normalization(const layer_context& c) {
    pair_ = c.state.normalizations[c.index];
    if (pair_ == nullptr) return;
    const auto relu = relu_in_place_after(c.state.graph, c.index);
    if (relu && relu->slope >= 0) relu_slope_ = c.take_relu(c.layer.needs_backward);
    pair_->factor = factor_.values;
    pair_->bias = bias_.values;
    pair_->channels = channels_;
    if (!pair_->goes_back) return;
    const std::size_t n = channels_.channels;
    pair_->after = {pair_->own.floats(), pair_->own.floats() + n, relu_slope_};
    pair_->means = pair_->own.floats() + 2 * n;
  }

  /// BatchNorm's backward() reads the same gradient, which stays that of the top.
  void sum_for_both() {
    const auto begin = [](operand& o) { return o.wanted() ? o.begin() : nullptr; };
    float *const dfactor = begin(factor_), *const dbias = begin(bias_);
    sum_scaled(compute_, channels_, pair_->kept(), pair_->statistics, top_.diff, factor_.values,
               bias_.values, pair_->after, dfactor, dbias, pair_->means, scratch_.bytes());
    if (dfactor != nullptr) factor_.end();
    if (dbias != nullptr) bias_.end();
  }

  stream& compute_;
  channel_shape channels_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  operand factor_, bias_;
  std::shared_ptr<scaled_normalization> pair_;
  float relu_slope_ = 1;
  device_memory kept_;  // x, where the layer works in place and its factor learns
  device_memory scratch_;
};

/// y = x where x > 0, slope x elsewhere, with a learned slope for each channel or one for all.
class prelu_kernel final : public kernel {
 public:
  explicit prelu_kernel(const layer_context& c)
      : compute_(c.compute()),
        shared_(c.layer.spec.prelu_param().channel_shared()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        slope_(c.parameter(0)),
        gradient_(c.gradient(0)) {
    channels_ = c.channels_of(c.bottom_shape(0));
    if (gradient_.wanted()) scratch_ = c.allocate(sum_scratch_bytes(channels_));
    if (c.in_place() && (backward_wanted_ || gradient_.wanted())) kept_ = c.allocate(top_.bytes());
  }

  void forward(const pass&) override {
    if (kept_.size() != 0)
      copy_values(compute_, top_.values(), bottom_.data, values_in(kept_, bottom_));
    prelu_forward(compute_, channels_, bottom_.data, slope_, shared_, top_.data);
  }

  void backward(const pass&) override {
    const values x = kept_.size() != 0 ? values_in(kept_, bottom_) : bottom_.data;
    if (gradient_.wanted()) {
      prelu_gradient(compute_, channels_, x, shared_, top_.diff, gradient_.begin(),
                     scratch_.bytes());
      gradient_.end();
    }
    if (backward_wanted_)
      prelu_backward(compute_, channels_, x, slope_, shared_, top_.diff, bottom_.diff);
  }

 private:
  stream& compute_;
  bool shared_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  const float* slope_;
  gradient_slot gradient_;
  channel_shape channels_;
  device_memory kept_, scratch_;
};

}  // namespace

/// A second bottom with axes of its own, or a factor of other axes than the channels', is read in NCHW.
layout_option scale_layout(const net& n, const net_layer& l) {
  return scales_channels(n, l) ? layout_option::as_bottom : layout_option::nchw;
}

std::unique_ptr<kernel> make_scale(const layer_context& c) {
  return std::make_unique<scale_kernel>(c);
}

std::unique_ptr<kernel> make_prelu(const layer_context& c) {
  return std::make_unique<prelu_kernel>(c);
}

}  // namespace poseidon::gpu
