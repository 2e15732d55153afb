// cpu/layers/activation.cpp - layers that map each value by itself: y = f(x), dx = dy * f'.
#include "models/net/activation.hpp"

#include "cpu/fusion.hpp"
#include "cpu/lanes.hpp"
#include "cpu/layer.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

template <class Function>
class elementwise_kernel final : public kernel {
 public:
  elementwise_kernel(const layer_context& c, Function f)
      : f_(f),
        in_place_(c.in_place()),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, c.top(0).form),
        dx_(c.wants_diff(0) ? view(c.bottom(0), part::diff, c.top(0).form) : view()) {
    if (in_place_ && f.needs_x() && c.wants_diff(0)) kept_x_ = buffer(c.top(0).stored());
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    const std::size_t size = top_->stored();
    if (kept_x_.size() != 0) std::copy_n(x, size, kept_x_.data());
    float* y = top_->data;
    for (std::size_t i = 0; i < size; ++i) y[i] = f_.value(x[i]);
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* x = kept_x_.size() != 0 ? kept_x_.data() : in_place_ ? top_->data : x_.load();
    const float* y = top_->data;
    const float* dy = top_->diff;
    float* dx = dx_.memory();
    const std::size_t size = top_->stored();
    for (std::size_t i = 0; i < size; ++i) dx[i] = dy[i] * f_.slope(x[i], y[i]);
    dx_.store();
  }

 private:
  Function f_;
  bool in_place_;
  cpu_blob* top_;
  view x_, dx_;
  buffer kept_x_;
};

/// ReLU with Caffe's negative_slope, in any layout, in place or not.
class relu_kernel final : public kernel {
 public:
  relu_kernel(const layer_context& c, activations::relu f)
      : f_(f),
        forward_done_(c.state.forward_fused[c.index]),
        backward_wanted_(c.wants_diff(0) && !c.state.backward_fused[c.index]),
        bottom_(&c.bottom(0)),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, c.top(0).form),
        dx_(c.bottom(0), part::diff, c.top(0).form) {}

  void forward(const pass&) override {
    if (forward_done_) return;
    with_type(top_->form, [&](auto of) {
      using T = decltype(of);
      const T* x = as<T>(x_.load());
      T* y = as<T>(top_->data);
      const float slope = f_.below;
      each_value<T>(top_->stored(), [=]<class V>(std::size_t i) {
        const V v = load<V>(x + i);
        store<V>(y + i, where_positive(v, v, slope * v));
      });
    });
  }

  /// In place the sign is that of y, as in Caffe, which assumes a slope that is not negative.
  void backward(const pass&) override {
    if (!backward_wanted_) return;
    with_type(top_->form, [&](auto of) {
      using T = decltype(of);
      const T* sign = as<T>(bottom_ == top_ || !f_.needs_x() ? top_->data : x_.load());
      const T* dy = as<T>(top_->diff);
      T* dx = as<T>(dx_.memory());
      const float slope = f_.below;
      each_value<T>(top_->stored(), [=]<class V>(std::size_t i) {
        const V factor = where_positive<V>(load<V>(sign + i), V{} + 1.0f, V{} + slope);
        store<V>(dx + i, load<V>(dy + i) * factor);
      });
    });
    dx_.store();
  }

 private:
  activations::relu f_;
  bool forward_done_, backward_wanted_;
  cpu_blob *bottom_, *top_;
  view x_, dx_;
};

template <class Function>
std::unique_ptr<kernel> make(const layer_context& c, const Function& f) {
  return std::make_unique<elementwise_kernel<Function>>(c, f);
}

/// Another kernel may already do a part of a ReLU.
std::unique_ptr<kernel> make(const layer_context& c, const activations::relu& f) {
  return std::make_unique<relu_kernel>(c, f);
}

}  // namespace

std::optional<following_relu> relu_in_place_after(const layer_context& c) {
  if (c.state.options.keep_all_diffs) return std::nullopt;
  return poseidon::relu_in_place_after(c.state.graph, c.index);
}

std::unique_ptr<kernel> make_activation(const layer_context& c) {
  return with_function(resolve_activation(c.layer), [&](const auto& f) { return make(c, f); });
}

}  // namespace poseidon::cpu
