// gpu/layers/eltwise.cpp - Eltwise, and what it does for the layers around it at the end of a residual block.
#include "gpu/kernels/channels.hpp"
#include "gpu/kernels/copies.hpp"
#include "gpu/kernels/elementwise.hpp"
#include "gpu/layers/layers.hpp"
#include "gpu/normalization.hpp"
#include "gpu/residual.hpp"

#include <array>

namespace poseidon::gpu {
namespace {

using operation = ::caffe::EltwiseParameter;

/// SUM with coefficients, PROD or MAX over two or more bottoms of one shape.
class eltwise_kernel final : public kernel {
 public:
  explicit eltwise_kernel(const layer_context& c)
      : compute_(c.compute()),
        how_(c.layer.spec.eltwise_param().operation()),
        size_(c.top(0).values()),
        top_(c.top(0)) {
    const auto& p = c.layer.spec.eltwise_param();
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i)
      bottoms_.push_back(
          {c.bottom(i), c.wants_diff(i), p.coeff_size() > 0 ? p.coeff(static_cast<int>(i)) : 1.0f});
    if (c.in_place() && c.layer.needs_backward && how_ != operation::SUM)
      c.refuse("only SUM can work in place: the others need their bottoms for backward.");
    if (how_ == operation::SUM && bottoms_.size() == 2 && !c.in_place())
      relu_slope_ = c.take_relu(both_wanted());
    if (const auto& r = c.state.residuals[c.index]) {
      one_gradient_ = r->one_gradient;
      if (one_gradient_) normalize_a_bottom(c, *r);
      if (r->split) {
        c.state.backward_done[*r->split] = true;
        gradients_ = {&c.state.blobs[r->gradients[0]], &c.state.blobs[r->gradients[1]]};
      }
    }
    if (how_ == operation::MAX) winner_ = c.allocate(size_ * sizeof(std::int32_t));
  }

  void forward(const pass&) override {
    const operand &first = bottoms_[0], &second = bottoms_[bottoms_.size() > 1 ? 1 : 0];
    if (bottoms_.size() == 1) {
      gpu::scale(compute_, size_, how_ == operation::SUM ? first.coefficient : 1, first.blob.data,
                 top_.data);
      if (how_ == operation::MAX) fill(compute_, size_, std::int32_t{0}, winner());
    } else if (normalized_ != nullptr) {
      const operand &of = bottoms_[normalizes_], &other = bottoms_[1 - normalizes_];
      normalize_scale_and_add(compute_, normalized_->channels, normalized_->x,
                              normalized_->statistics, normalized_->factor, normalized_->bias,
                              of.coefficient, other.coefficient, other.blob.data, relu_slope_,
                              top_.data);
    } else if (how_ == operation::SUM) {
      add_scaled(compute_, size_, first.coefficient, first.blob.data, second.coefficient,
                 second.blob.data, top_.data, relu_slope_);
      for (std::size_t b = 2; b < bottoms_.size(); ++b)
        add_scaled(compute_, size_, 1, top_.data, bottoms_[b].coefficient, bottoms_[b].blob.data,
                   top_.data);
    } else if (how_ == operation::PROD) {
      multiply(compute_, size_, first.blob.data, second.blob.data, top_.data);
      for (std::size_t b = 2; b < bottoms_.size(); ++b)
        multiply(compute_, size_, top_.data, bottoms_[b].blob.data, top_.data);
    } else {
      copy_values(compute_, size_, first.blob.data, top_.data);
      fill(compute_, size_, std::int32_t{0}, winner());
      // As Caffe: of the first two the second wins a tie, later ones lose theirs.
      for (std::size_t b = 1; b < bottoms_.size(); ++b)
        take_larger(compute_, size_, bottoms_[b].blob.data, b == 1, static_cast<std::int32_t>(b),
                    top_.data, winner());
    }
  }

  void backward(const pass&) override {
    if (relu_slope_ != 1 && both_wanted())
      return add_scaled_backward(
          compute_, size_, relu_slope_, top_.data, gradients_[0]->diff,
          gradients_[1] == nullptr ? const_values() : const_values(gradients_[1]->diff),
          bottoms_[0].coefficient, one_gradient_ ? top_.diff : bottoms_[0].blob.diff,
          bottoms_[1].coefficient, one_gradient_ ? values() : bottoms_[1].blob.diff);
    // In place (SUM only) the first bottom's diff is the top's own and goes last.
    for (std::size_t b = bottoms_.size(); b-- > 0;) {
      if (bottoms_[b].backward_wanted) write_diff(b);
    }
  }

 private:
  struct operand {
    const gpu_blob& blob;
    bool backward_wanted;
    float coefficient;
  };

  /// Takes a bottom whose BatchNorm's input is still in memory.
  void normalize_a_bottom(const layer_context& c, const residual& r) {
    for (std::size_t n = 0; n + 1 < r.normalizing.size(); n += 2) {
      const std::size_t scale = r.normalizing[n + 1];
      if (!c.state.first_bottoms[r.normalizing[n]]) continue;
      normalized_ = c.state.normalizations[scale];
      normalized_->added = true;
      normalizes_ = c.state.graph.layers[scale].tops[0] == c.layer.bottoms[0] ? 0 : 1;
      return;
    }
  }
  [[nodiscard]] bool both_wanted() const {
    return bottoms_[0].backward_wanted && bottoms_[1].backward_wanted;
  }
  void write_diff(std::size_t b) {
    const values dx = bottoms_[b].blob.diff;
    if (how_ == operation::SUM) {
      gpu::scale(compute_, size_, bottoms_[b].coefficient, top_.diff, dx);
    } else if (how_ == operation::MAX) {
      give_to_winner(compute_, size_, static_cast<std::int32_t>(b), winner(), top_.diff, dx);
    } else {  // the product of the others, without dividing: a factor may be zero
      values so_far = top_.diff;
      for (std::size_t o = 0; o < bottoms_.size(); ++o) {
        if (o == b) continue;
        multiply(compute_, size_, so_far, bottoms_[o].blob.data, dx);
        so_far = dx;
      }
    }
  }
  [[nodiscard]] std::int32_t* winner() const {
    return reinterpret_cast<std::int32_t*>(winner_.bytes());
  }

  stream& compute_;
  operation::EltwiseOp how_;
  std::size_t size_;
  const gpu_blob& top_;
  std::vector<operand> bottoms_;
  float relu_slope_ = 1;  // slope of the ReLU in place behind a sum of two
  // See gpu/residual.hpp. The gradients to be summed: the top's own, or those of the Split behind it.
  std::array<const gpu_blob*, 2> gradients_{&top_, nullptr};
  bool one_gradient_ = false;
  std::shared_ptr<scaled_normalization> normalized_;  // of the normalised bottom, if there is one
  std::size_t normalizes_ = 0;
  device_memory winner_;
};

}  // namespace

std::unique_ptr<kernel> make_eltwise(const layer_context& c) {
  return std::make_unique<eltwise_kernel>(c);
}

}  // namespace poseidon::gpu
