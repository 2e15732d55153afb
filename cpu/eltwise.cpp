// cpu/eltwise.cpp - Eltwise: SUM with coefficients, PROD, MAX over two or more bottoms of one
// shape.
#include "cpu/layer.hpp"

#include <cstring>

namespace poseidon::cpu {
namespace {

using operation = ::caffe::EltwiseParameter;

class eltwise_kernel final : public kernel {
 public:
  explicit eltwise_kernel(const layer_context& c)
      : how_(c.layer.spec.eltwise_param().operation()), top_(&c.top(0)) {
    const auto& p = c.layer.spec.eltwise_param();
    for (std::size_t i = 0; i < c.layer.bottoms.size(); ++i) {
      bottoms_.push_back({view(c.bottom(i), part::data, top_->form),
                          {},
                          p.coeff_size() > 0 ? p.coeff(static_cast<int>(i)) : 1.0f});
      if (c.wants_diff(i)) bottoms_.back().dx = view(c.bottom(i), part::diff, top_->form);
    }
    if (c.in_place() && c.layer.needs_backward && how_ != operation::SUM) {
      c.refuse("only SUM can work in place: the others need their bottoms for backward.");
    }
    if (how_ == operation::MAX) winner_.resize(top_->stored());
  }

  void forward(const pass&) override {
    float* y = top_->data;
    const std::size_t size = top_->stored();
    for (std::size_t b = 0; b < bottoms_.size(); ++b) {
      const float* x = bottoms_[b].x.load();
      const float k = bottoms_[b].coefficient;
      if (b == 0) {
        for (std::size_t i = 0; i < size; ++i) y[i] = how_ == operation::SUM ? k * x[i] : x[i];
        std::fill(winner_.begin(), winner_.end(), std::uint16_t{0});
      } else if (how_ == operation::SUM) {
        for (std::size_t i = 0; i < size; ++i) y[i] += k * x[i];
      } else if (how_ == operation::PROD) {
        for (std::size_t i = 0; i < size; ++i) y[i] *= x[i];
      } else {
        for (std::size_t i = 0; i < size; ++i) {
          // As Caffe: of the first two the second wins a tie, later ones lose theirs.
          const bool wins = b == 1 ? x[i] >= y[i] : x[i] > y[i];
          if (wins) y[i] = x[i], winner_[i] = static_cast<std::uint16_t>(b);
        }
      }
    }
  }

  void backward(const pass&) override {
    // In place (SUM only) the first bottom's diff is the top's own and goes last.
    for (std::size_t b = bottoms_.size(); b-- > 0;) {
      if (bottoms_[b].dx.exists()) write_diff(b);
    }
  }

 private:
  struct operand {
    view x, dx;
    float coefficient;
  };

  void write_diff(std::size_t b) {
    const float* dy = top_->diff;
    float* dx = bottoms_[b].dx.memory();
    const std::size_t size = top_->stored();
    const float k = bottoms_[b].coefficient;
    if (how_ == operation::SUM) {
      for (std::size_t i = 0; i < size; ++i) dx[i] = k * dy[i];
    } else if (how_ == operation::MAX) {
      for (std::size_t i = 0; i < size; ++i) dx[i] = winner_[i] == b ? dy[i] : 0;
    } else {  // the product of the others, without dividing: a factor may be zero
      std::memcpy(dx, dy, size * sizeof(float));
      for (std::size_t o = 0; o < bottoms_.size(); ++o) {
        if (o == b) continue;
        const float* x = bottoms_[o].x.load();
        for (std::size_t i = 0; i < size; ++i) dx[i] *= x[i];
      }
    }
    bottoms_[b].dx.store();
  }

  operation::EltwiseOp how_;
  cpu_blob* top_;
  std::vector<operand> bottoms_;
  std::vector<std::uint16_t> winner_;
};

}  // namespace

std::unique_ptr<kernel> make_eltwise(const layer_context& c) {
  return std::make_unique<eltwise_kernel>(c);
}

}  // namespace poseidon::cpu
