// cpu/layers/eltwise.cpp - Eltwise: SUM with coefficients, PROD, MAX over two or more bottoms of one
// shape.
#include "cpu/fusion.hpp"
#include "cpu/lanes.hpp"
#include "cpu/layer.hpp"

#include <cstring>

namespace poseidon::cpu {
namespace {

using operation = ::caffe::EltwiseParameter;

/// T: the type of the top's values, and of the bottoms' in the top's layout.
template <class T>
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
    if (const auto relu = relu_in_place_after(c); relu && how_ == operation::SUM) {
      relu_slope_ = relu->slope;
      c.state.forward_fused[relu->layer] = true;
      c.state.backward_fused[relu->layer] = c.layer.needs_backward;
    }
    shared_ = c.state.has_diff_of_top[c.index];
    if (shared_) top_->diff = c.bottom(*shared_).diff;
    for (std::size_t b = 1; relu_slope_ && b < bottoms_.size(); ++b)
      if (bottoms_[b].dx.exists() && b != shared_) masked_ = b;
  }

  void forward(const pass&) override {
    if (how_ == operation::SUM) return sum();
    T* y = as<T>(top_->data);
    const std::size_t size = top_->stored();
    for (std::size_t b = 0; b < bottoms_.size(); ++b) {
      const T* x = as<T>(bottoms_[b].x.load());
      if (b == 0) {
        std::copy_n(x, size, y);
        std::fill(winner_.begin(), winner_.end(), std::uint16_t{0});
      } else if (how_ == operation::PROD) {
        for (std::size_t i = 0; i < size; ++i) y[i] = y[i] * x[i];
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
    if (relu_slope_) mask_diff();
    // In place (SUM only) the first bottom's diff is the top's own and goes last.
    for (std::size_t b = bottoms_.size(); b-- > 0;) {
      if (bottoms_[b].dx.exists() && b != shared_ && b != masked_) write_diff(b);
    }
  }

 private:
  struct operand {
    view x, dx;
    float coefficient;
  };

  /// The first two bottoms in one pass, and a ReLU behind it in the last.
  void sum() {
    for (std::size_t b = 1; b < bottoms_.size(); ++b) {
      const T* before = as<T>(b == 1 ? bottoms_[0].x.load() : top_->data);
      const float k = b == 1 ? bottoms_[0].coefficient : 1;
      if (relu_slope_ && b + 1 == bottoms_.size()) {
        const float slope = *relu_slope_;
        add(before, k, b, [slope](auto v) { return where_positive(v, v, slope * v); });
      } else {
        add(before, k, b, [](auto v) { return v; });
      }
    }
  }

  template <class Ending>
  void add(const T* before, float k_before, std::size_t b, Ending ending) {
    const T* x = as<T>(bottoms_[b].x.load());
    const float k = bottoms_[b].coefficient;
    T* y = as<T>(top_->data);
    each_value<T>(top_->stored(), [=]<class V>(std::size_t i) {
      store<V>(y + i, ending(k_before * load<V>(before + i) + k * load<V>(x + i)));
    });
  }

  /// The backward pass of the ReLU behind, which leaves its gradient where it was; and the gradient of the last bottom on the way.
  void mask_diff() {
    const T* y = as<T>(top_->data);
    T* dy = as<T>(top_->diff);
    const float slope = *relu_slope_;
    const auto masked = [=]<class V>(std::size_t i) {
      const V d = load<V>(dy + i);
      const V own = where_positive(load<V>(y + i), d, d * slope);
      store<V>(dy + i, own);
      return own;
    };
    if (!masked_) {
      each_value<T>(top_->stored(),
                    [=]<class V>(std::size_t i) { masked.template operator()<V>(i); });
      return;
    }
    T* dx = as<T>(bottoms_[*masked_].dx.memory());
    const float k = bottoms_[*masked_].coefficient;
    each_value<T>(top_->stored(), [=]<class V>(std::size_t i) {
      store<V>(dx + i, k * masked.template operator()<V>(i));
    });
    bottoms_[*masked_].dx.store();
  }

  void write_diff(std::size_t b) {
    const T* dy = as<T>(top_->diff);
    T* dx = as<T>(bottoms_[b].dx.memory());
    const std::size_t size = top_->stored();
    const float k = bottoms_[b].coefficient;
    if (how_ == operation::SUM) {
      each_value<T>(size, [=]<class V>(std::size_t i) { store<V>(dx + i, k * load<V>(dy + i)); });
    } else if (how_ == operation::MAX) {
      for (std::size_t i = 0; i < size; ++i) dx[i] = winner_[i] == b ? dy[i] : T(0);
    } else {  // the product of the others, without dividing: a factor may be zero
      std::memcpy(dx, dy, size * sizeof(T));
      for (std::size_t o = 0; o < bottoms_.size(); ++o) {
        if (o == b) continue;
        const T* x = as<T>(bottoms_[o].x.load());
        for (std::size_t i = 0; i < size; ++i) dx[i] = dx[i] * x[i];
      }
    }
    bottoms_[b].dx.store();
  }

  operation::EltwiseOp how_;
  cpu_blob* top_;
  std::vector<operand> bottoms_;
  std::vector<std::uint16_t> winner_;
  std::optional<float> relu_slope_;
  std::optional<std::size_t> shared_;  ///< its diff is the top's
  std::optional<std::size_t> masked_;  ///< mask_diff() writes its diff
};

}  // namespace

std::unique_ptr<kernel> make_eltwise(const layer_context& c) {
  return with_type(c.top(0).form, [&](auto of) -> std::unique_ptr<kernel> {
    return std::make_unique<eltwise_kernel<decltype(of)>>(c);
  });
}

}  // namespace poseidon::cpu
