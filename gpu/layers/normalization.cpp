// gpu/layers/normalization.cpp - LRN and BatchNorm.
#include "gpu/normalization.hpp"

#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/lrn.hpp"
#include "gpu/layers/layers.hpp"
#include "models/solver/solver_rule.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

class lrn_kernel final : public kernel {
 public:
  explicit lrn_kernel(const layer_context& c)
      : compute_(c.compute()),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        sums_(c.allocate(bottom_.values() * sizeof(float))) {
    const auto& p = c.layer.spec.lrn_param();
    const shape& s = c.bottom_shape(0);
    shape_.over = c.channels_of(s);
    shape_.height = static_cast<int>(s[2]);
    shape_.width = static_cast<int>(s[3]);
    shape_.size = static_cast<int>(p.local_size());
    shape_.within_channel = p.norm_region() == ::caffe::LRNParameter::WITHIN_CHANNEL;
    shape_.alpha = p.alpha();
    shape_.beta = p.beta();
    shape_.k = shape_.within_channel ? 1.0f : p.k();  // Caffe ignores k within channels
  }

  void forward(const pass&) override {
    lrn_forward(compute_, shape_, bottom_.data, top_.data, sums_.floats());
  }
  void backward(const pass&) override {
    if (backward_wanted_)
      lrn_backward(compute_, shape_, bottom_.data, top_.data, sums_.floats(), top_.diff,
                   bottom_.diff);
  }

 private:
  stream& compute_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  device_memory sums_;
  lrn_shape shape_;
};

/// Each channel brought to mean 0 and variance 1, over the batch of this replica or with the running statistics.
/// Caffe's three blobs are the sums of means and of variances, and what both are to be divided by; nothing is learned
/// from a gradient. With statistics of the batch backward() writes what this pass adds to the blobs where other layers
/// write gradients, see net_parameter::average_momentum.
///
/// Where a Scale works in place behind it, that normalises as well: see gpu/normalization.hpp.
class batch_norm_kernel final : public kernel {
 public:
  explicit batch_norm_kernel(const layer_context& c)
      : compute_(c.compute()),
        channels_(c.channels_of(c.bottom_shape(0))),
        eps_(c.layer.spec.batch_norm_param().eps()),
        average_momentum_(c.layer.spec.batch_norm_param().moving_average_fraction()),
        uses_batch_(uses_batch_statistics(c.state.graph, c.layer)),
        bottom_(c.bottom(0)),
        top_(c.top(0)),
        backward_wanted_(c.wants_diff(0)),
        own_(c.allocate(5 * channels_.channels * sizeof(float))),
        scratch_(c.allocate(sum_scratch_bytes(channels_))) {
    const std::size_t n = channels_.channels;
    statistics_ = {own_.floats(), own_.floats() + n, own_.floats() + 2 * n};
    means_ = own_.floats() + 3 * n;
    for (std::size_t s = 0; s < 3; ++s) {
      blobs_[s] = c.parameter(s);
      if (uses_batch_) change_[s] = c.statistic(s);
    }
    pair_with_scale(c);
    if (pair_ != nullptr) return;
    // The values that backward() needs are the top's, unless another layer overwrites those.
    if (backward_wanted_ && uses_batch_ && (c.in_place() || is_overwritten(c)))
      kept_ = c.allocate(top_.bytes());
  }

  void forward(const pass&) override {
    if (uses_batch_) {
      find_statistics(compute_, channels_, eps_, bottom_.data, statistics_, scratch_.bytes());
    } else {
      read_statistics(compute_, channels_.channels, eps_, blobs_[0], blobs_[1], blobs_[2],
                      statistics_);
    }
    if (pair_ == nullptr)
      normalize(compute_, channels_, bottom_.data, statistics_, top_.data, kept());
  }

  void backward(const pass& p) override {
    if (uses_batch_ && change_[0] != nullptr)
      write_change(compute_, channels_, momentum_over(average_momentum_, p.passes_after),
                   statistics_, change_[0], change_[1], change_[2]);
    if (!backward_wanted_) return;
    if (pair_ != nullptr) {
      normalize_scaled_backward(compute_, channels_, pair_->kept(), statistics_, top_.diff,
                                pair_->after, pair_->means, bottom_.diff);
    } else if (uses_batch_) {
      normalize_backward(compute_, channels_, kept_.size() != 0 ? kept() : top_.data, top_.diff,
                         statistics_.scale, means_, bottom_.diff, scratch_.bytes());
    } else {
      scale_channels(compute_, channels_, top_.diff, statistics_.scale, nullptr, bottom_.diff);
    }
  }

 private:
  void pair_with_scale(const layer_context& c) {
    const auto next = scale_to_share_with(c.state, c.index);
    if (!next) return;
    pair_ = std::make_shared<scaled_normalization>();
    pair_->x = bottom_.data;
    pair_->statistics = statistics_;
    pair_->goes_back = next->goes_back;
    if (pair_->goes_back) {
      if (!c.state.first_bottoms[c.index]) pair_->copy = c.allocate(top_.bytes());
      pair_->own = c.allocate(4 * channels_.channels * sizeof(float));
    }
    c.state.normalizations[next->layer] = pair_;
  }
  [[nodiscard]] values kept() const {
    return kept_.size() == 0 ? values() : values_in(kept_, top_);
  }
  static bool is_overwritten(const layer_context& c) {
    const auto next = consumer(c.state.graph, c.layer.tops[0], c.index);
    return next && c.state.graph.layers[*next].tops == c.layer.tops;
  }

  stream& compute_;
  channel_shape channels_;
  float eps_, average_momentum_;
  bool uses_batch_;
  const gpu_blob &bottom_, &top_;
  bool backward_wanted_;
  device_memory own_, scratch_, kept_;
  std::shared_ptr<scaled_normalization> pair_;
  channel_statistics statistics_{};
  float* means_ = nullptr;
  const float* blobs_[3] = {};
  float* change_[3] = {};
};

}  // namespace

layout_option lrn_layout(const net&, const net_layer& l) {
  const bool within = l.spec.lrn_param().norm_region() == ::caffe::LRNParameter::WITHIN_CHANNEL;
  return within ? layout_option::nchw : layout_option::as_bottom;
}

std::unique_ptr<kernel> make_lrn(const layer_context& c) {
  if (c.bottom_shape(0).size() != 4)
    c.refuse("LRN wants a bottom of 4 axes, this one is " + to_string(c.bottom_shape(0)) + ".");
  if (c.in_place())
    c.refuse("LRN cannot work in place: its backward needs its input. Name the top anew.");
  return std::make_unique<lrn_kernel>(c);
}

std::unique_ptr<kernel> make_batch_norm(const layer_context& c) {
  return std::make_unique<batch_norm_kernel>(c);
}

}  // namespace poseidon::gpu
