// cpu/layers/scale.cpp
//
// Scale and Bias: y = x * factor + bias, with one factor and bias for each place in a run of x's axes,
// learned or from a second bottom. Seen as [images, channels, plane] the axes of the run are the
// channels, wherever they lie.
#include "cpu/channels.hpp"
#include "cpu/fusion.hpp"
#include "cpu/normalization.hpp"
#include "models/net/factor_axes.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

/// The axes before the factor's, the factor's own, and those behind.
image_extent resolve_extent(const layer_context& c) {
  const shape& own = c.layer.bottoms.size() > 1
                         ? c.bottom_shape(1)
                         : c.state.graph.parameters[c.layer.parameters.at(0)].shape;
  const auto axes = resolve_factor_axes(c.layer, c.bottom_shape(0), own);
  return {axes.before, axes.own, axes.behind};
}

/// One of the two operands: learned, or a second bottom; empty if there is none.
struct operand {
  parameter_reader learned;
  gradient_slot gradient;
  view values, diff;
  std::vector<float> by_channel;  ///< from the last load(), padded for the layout

  [[nodiscard]] bool exists() const { return learned.exists() || values.exists(); }
  [[nodiscard]] bool wanted() const { return gradient.wanted() || diff.exists(); }
  void load(std::size_t channels) {
    const float* from = learned.exists() ? learned.values() : values.load();
    std::copy_n(from, channels, by_channel.begin());
  }
  void write(const std::vector<double>& sums, std::size_t channels) {
    float* to = gradient.wanted() ? gradient.begin() : diff.memory();
    for (std::size_t k = 0; k < channels; ++k) to[k] = static_cast<float>(sums[k]);
    if (gradient.wanted()) {
      gradient.end();
    } else {
      diff.store();
    }
  }
};

class scale_kernel final : public kernel {
 public:
  explicit scale_kernel(const layer_context& c)
      : form_(c.top(0).form),
        extent_(resolve_extent(c)),
        pair_(c.state.normalizations[c.index]),
        in_place_(c.in_place()),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, form_) {
    const bool scale = c.layer.type == "Scale";
    operand& first = scale ? factor_ : bias_;
    std::size_t slot = 0;
    if (c.layer.bottoms.size() > 1) {
      first.values = view(c.bottom(1), part::data, layout::plain);
      if (c.wants_diff(1)) first.diff = view(c.bottom(1), part::diff, layout::plain);
    } else {
      first.learned = c.parameter(slot);
      first.gradient = c.gradient(slot++);
    }
    if (scale && c.layer.spec.scale_param().bias_term()) {
      bias_.learned = c.parameter(slot);
      bias_.gradient = c.gradient(slot);
    }
    const std::size_t channels = padded_channels(form_, extent_);
    factor_.by_channel.assign(channels, scale ? 0.0f : 1.0f);
    bias_.by_channel.assign(channels, 0.0f);
    if (const auto relu = relu_in_place_after(c)) {
      relu_slope_ = relu->slope;
      c.state.forward_fused[relu->layer] = true;
      c.state.backward_fused[relu->layer] = c.layer.needs_backward;
    }
    if (in_place_ && !pair_ && factor_.wanted()) kept_ = buffer(top_->memory());
    if (c.wants_diff(0)) dx_ = view(c.bottom(0), part::diff, form_);
  }

  void forward(const pass&) override {
    if (factor_.exists()) factor_.load(extent_.channels);
    if (bias_.exists()) bias_.load(extent_.channels);
    if (pair_) return normalize();
    const float* from = x_.load();
    if (kept_.size() != 0) std::copy_n(from, kept_.size(), kept_.data());
    write([from]<class V, class T>(const channel_run&) {
      return [x = as<T>(from)](std::size_t i) { return load<V>(x + i); };
    });
  }

  void backward(const pass&) override {
    std::vector<double> sum(factor_.by_channel.size()), dot(factor_.by_channel.size());
    const bool wants_dot = factor_.wanted() || pair_, wants_sum = bias_.wanted() || pair_;
    const float* values = !wants_dot          ? nullptr
                          : pair_             ? pair_->normalized.data()
                          : kept_.size() != 0 ? kept_.data()
                                              : x_.load();
    // Block by block: a block stays in the cache from one loop to the next.
    with_lanes(form_, [&](auto like, auto of) {
      using V = decltype(like);
      using T = decltype(of);
      const T *x = as<T>(values), *dy = as<T>(top_->diff);
      each_run(form_, extent_, [&](const channel_run& r) {
        if (relu_slope_) mask<V, T>(r);
        if (wants_dot)
          add_to_channels(dot.data(), r, sum_over<V>(r, [&]<class W>(std::size_t i) {
                            return load<W>(dy + i) * load<W>(x + i);
                          }));
        if (wants_sum)
          add_to_channels(sum.data(), r,
                          sum_over<V>(r, [&]<class W>(std::size_t i) { return load<W>(dy + i); }));
        if (!pair_ && dx_.exists()) write_diff<V, T>(r);
      });
    });
    if (factor_.wanted()) factor_.write(dot, extent_.channels);
    if (bias_.wanted()) bias_.write(sum, extent_.channels);
    if (pair_) {
      pair_->factor = factor_.by_channel;
      pair_->diff_sum = std::move(sum);
      pair_->diff_dot = std::move(dot);
    } else if (dx_.exists()) {
      dx_.store();
    }
  }

 private:
  /// Computes the BatchNorm's values on the way: no blob holds them.
  void normalize() {
    write([&]<class V, class T>(const channel_run& r) {
      const T* x = as<T>(pair_->x);
      T* kept = as<T>(pair_->normalized.data());
      const V mean = of_channel<V>(pair_->mean.data(), r);
      const V scale = of_channel<V>(pair_->scale.data(), r);
      return [=](std::size_t i) {
        const V v = (load<V>(x + i) - mean) * scale;
        store(kept + i, v);
        return v;
      };
    });
  }

  /// y = x factor + bias, and the ReLU behind it. `of(run)` is a function from a place to x.
  template <class Of>
  void write(Of of) {
    if (relu_slope_) {
      write_all<true>(of);
    } else {
      write_all<false>(of);
    }
  }

  template <bool Relu, class Of>
  void write_all(Of of) {
    const float slope = relu_slope_.value_or(1);
    with_lanes(form_, [&](auto like, auto of_value) {
      using V = decltype(like);
      using T = decltype(of_value);
      T* y = as<T>(top_->data);
      each_run(form_, extent_, [&](const channel_run& r) {
        const V factor = of_channel<V>(factor_.by_channel.data(), r);
        const V bias = of_channel<V>(bias_.by_channel.data(), r);
        const auto x = of.template operator()<V, T>(r);
        for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
          V v = x(i) * factor + bias;
          if constexpr (Relu) v = where_positive(v, v, v * slope);
          store(y + i, v);
        }
      });
    });
  }

  /// The ReLU's backward pass, which leaves its gradient where it was.
  template <class V, class T>
  void mask(const channel_run& r) {
    const T* y = as<T>(top_->data);
    T* dy = as<T>(top_->diff);
    const float slope = *relu_slope_;
    for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
      const V d = load<V>(dy + i);
      store(dy + i, where_positive(load<V>(y + i), d, d * slope));
    }
  }

  template <class V, class T>
  void write_diff(const channel_run& r) {
    const T* dy = as<T>(top_->diff);
    T* dx = as<T>(dx_.memory());
    if (!factor_.exists() && dx == dy) return;
    const V factor = of_channel<V>(factor_.by_channel.data(), r);
    for (std::size_t i = r.at; i < r.end; i += r.step_for<V>())
      store(dx + i, load<V>(dy + i) * factor);
  }

  layout form_;
  image_extent extent_;
  std::shared_ptr<scaled_normalization> pair_;
  bool in_place_;
  cpu_blob* top_;
  view x_, dx_;
  operand factor_, bias_;
  std::optional<float> relu_slope_;
  buffer kept_;
};

}  // namespace

std::unique_ptr<kernel> make_scale(const layer_context& c) {
  return std::make_unique<scale_kernel>(c);
}

}  // namespace poseidon::cpu
