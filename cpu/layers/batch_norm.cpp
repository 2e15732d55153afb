// cpu/layers/batch_norm.cpp
//
// BatchNorm: each channel brought to mean 0 and variance 1, over the batch of this replica or with
// the running statistics. Caffe's three blobs are the sums S_mean, S_variance and the factor f that
// both are to be divided by; nothing is learned from a gradient. With statistics of the batch,
// backward() writes what this pass adds to the blobs where other layers write gradients, see
// net_parameter::average_momentum.
#include "cpu/channels.hpp"
#include "cpu/layer.hpp"
#include "cpu/normalization.hpp"
#include "models/net/fusion.hpp"

#include <cmath>

namespace poseidon::cpu {
namespace {

class batch_norm_kernel final : public kernel {
 public:
  explicit batch_norm_kernel(const layer_context& c)
      : form_(c.top(0).form),
        extent_(image_of(c.bottom_shape(0))),
        values_per_channel_(extent_.samples * extent_.plane),
        eps_(c.layer.spec.batch_norm_param().eps()),
        uses_batch_(uses_batch_statistics(c.state.graph, c.layer)),
        top_(&c.top(0)),
        x_(c.bottom(0), part::data, form_) {
    const std::size_t channels = padded_channels(form_, extent_);
    mean_ = variance_ = scale_ = std::vector<float>(channels);
    for (std::size_t s = 0; s < 3; ++s) blobs_[s] = c.parameter(s);
    if (uses_batch_) {
      average_momentum_ = c.layer.spec.batch_norm_param().moving_average_fraction();
      for (std::size_t s = 0; s < 3; ++s) change_[s] = c.statistic(s);
    }
    if (!c.wants_diff(0)) return;
    dx_ = view(c.bottom(0), part::diff, form_);
    if (!uses_batch_) return;
    pair_with_scale(c);
    // The values that backward() needs are the top's, unless another layer overwrites those.
    if (!pair_ && (c.in_place() || is_overwritten(c))) kept_ = buffer(top_->memory());
  }

  void forward(const pass&) override {
    const float* x = x_.load();
    if (uses_batch_) {
      find_statistics(x);
    } else {
      read_statistics();
    }
    for (std::size_t k = 0; k < extent_.channels; ++k)
      scale_[k] = 1 / std::sqrt(variance_[k] + eps_);
    if (pair_) {
      pair_->x = x;
      pair_->mean = mean_;
      pair_->scale = scale_;
    } else if (kept_.size() != 0) {
      normalize<true>(x, top_->data);
    } else {
      normalize<false>(x, top_->data);
    }
  }

  void backward(const pass& p) override {
    if (uses_batch_) write_change(p);
    if (!dx_.exists()) return;
    if (uses_batch_) {
      backward_through_batch();
    } else {
      with_lanes(form_, [&](auto like, auto of) {
        using T = decltype(of);
        scale_diff<decltype(like)>(as<T>(top_->diff), as<T>(dx_.memory()));
      });
    }
    dx_.store();
  }

 private:
  /// A Scale in place can do without a copy of its input, which is this layer's output.
  void pair_with_scale(const layer_context& c) {
    if (c.state.options.keep_all_diffs) return;
    const auto next = scale_in_place_after(c.state.graph, c.index);
    if (!next || !c.state.graph.layers[*next].needs_backward) return;
    pair_ = std::make_shared<scaled_normalization>();
    pair_->normalized = buffer(top_->memory());
    c.state.normalizations[*next] = pair_;
  }

  static bool is_overwritten(const layer_context& c) {
    const auto next = consumer(c.state.graph, c.layer.tops[0], c.index);
    return next && c.state.graph.layers[*next].tops == c.layer.tops;
  }

  /// One image's block at a time (it stays in the cache for its second pass), joined in double.
  /// Source   Chan, Golub & LeVeque, "Updating formulae and a pairwise algorithm for computing sample
  ///          variances" (1979).
  void find_statistics(const float* from) {
    const std::size_t channels = mean_.size();
    std::vector<double> mean(channels), squares(channels);
    with_lanes(form_, [&](auto like, auto of) {
      using V = decltype(like);
      const auto* x = as<decltype(of)>(from);
      each_run(form_, extent_, [&](const channel_run& r) {
        const auto plane = static_cast<double>(r.pixels), seen = static_cast<double>(r.before);
        const V own_mean = sum_over<V>(r, [&]<class W>(std::size_t i) { return load<W>(x + i); }) /
                           static_cast<float>(r.pixels);
        const V own_squares = sum_over<V>(r, [&]<class W>(std::size_t i) {
          const W d = load<W>(x + i) - own_mean;
          return d * d;
        });
        float m[step_of<V>], s[step_of<V>];
        store(m, own_mean);
        store(s, own_squares);
        for (std::size_t k = 0; k < step_of<V>; ++k) {
          const std::size_t at = r.channel + k;
          const double apart = double{m[k]} - mean[at];
          mean[at] += apart * (plane / (seen + plane));
          squares[at] += double{s[k]} + apart * apart * (seen * plane / (seen + plane));
        }
      });
    });
    for (std::size_t k = 0; k < extent_.channels; ++k) {
      mean_[k] = static_cast<float>(mean[k]);
      variance_[k] = static_cast<float>(squares[k] / static_cast<double>(values_per_channel_));
    }
  }

  void read_statistics() {
    const float factor = blobs_[2].values()[0];
    const float one_over = factor == 0 ? 0 : 1 / factor;
    for (std::size_t k = 0; k < extent_.channels; ++k) {
      mean_[k] = one_over * blobs_[0].values()[k];
      variance_[k] = one_over * blobs_[1].values()[k];
    }
  }

  /// What this pass adds to the running sums, weighted for the passes that follow it in its clock.
  void write_change(const pass& p) const {
    if (change_[0].empty()) return;
    const float weight = momentum_over(average_momentum_, p.passes_after);
    const auto m = static_cast<float>(values_per_channel_);
    const float unbiased = m > 1 ? m / (m - 1) : 1;
    for (std::size_t k = 0; k < extent_.channels; ++k) {
      change_[0][k] = weight * mean_[k];
      change_[1][k] = weight * (unbiased * variance_[k]);
    }
    change_[2][0] = weight;
  }

  template <bool Keeps>
  void normalize(const float* from, float* to) {
    with_lanes(form_, [&](auto like, auto of) {
      using V = decltype(like);
      using T = decltype(of);
      const T* x = as<T>(from);
      T *y = as<T>(to), *copy = as<T>(kept_.data());
      each_run(form_, extent_, [&](const channel_run& r) {
        const V mean = of_channel<V>(mean_.data(), r), scale = of_channel<V>(scale_.data(), r);
        for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
          const V v = (load<V>(x + i) - mean) * scale;
          store(y + i, v);
          if constexpr (Keeps) store(copy + i, v);
        }
      });
    });
  }

  template <class V, class T>
  void scale_diff(const T* dy, T* dx) const {
    each_run(form_, extent_, [&](const channel_run& r) {
      const V scale = of_channel<V>(scale_.data(), r);
      for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
        store(dx + i, load<V>(dy + i) * scale);
      }
    });
  }

  /// dx = (dy - mean(dy) - y mean(dy y)) scale
  void backward_through_batch() {
    const float* y = pair_               ? pair_->normalized.data()
                     : kept_.size() != 0 ? kept_.data()
                                         : top_->data;
    const std::size_t channels = mean_.size();
    std::vector<double> sum(channels), dot(channels);
    std::vector<float> mean(channels), along(channels), scale(scale_);
    if (pair_) {
      sum = pair_->diff_sum;
      dot = pair_->diff_dot;
      for (std::size_t k = 0; k < channels; ++k) scale[k] *= pair_->factor[k];
    } else {
      with_lanes(form_, [&](auto like, auto of) {
        using T = decltype(of);
        sum_diffs<decltype(like)>(as<T>(top_->diff), as<T>(y), sum, dot);
      });
    }
    for (std::size_t k = 0; k < extent_.channels; ++k) {
      mean[k] = static_cast<float>(sum[k] / static_cast<double>(values_per_channel_));
      along[k] = static_cast<float>(dot[k] / static_cast<double>(values_per_channel_));
    }
    with_lanes(form_, [&](auto like, auto of) {
      using V = decltype(like);
      using T = decltype(of);
      const T *dy = as<T>(top_->diff), *values = as<T>(y);
      T* dx = as<T>(dx_.memory());
      each_run(form_, extent_, [&](const channel_run& r) {
        const V m = of_channel<V>(mean.data(), r), a = of_channel<V>(along.data(), r),
                s = of_channel<V>(scale.data(), r);
        for (std::size_t i = r.at; i < r.end; i += r.step_for<V>()) {
          store(dx + i, (load<V>(dy + i) - m - load<V>(values + i) * a) * s);
        }
      });
    });
  }

  template <class V, class T>
  void sum_diffs(const T* dy, const T* y, std::vector<double>& sum,
                 std::vector<double>& dot) const {
    each_run(form_, extent_, [&](const channel_run& r) {
      add_to_channels(sum.data(), r,
                      sum_over<V>(r, [&]<class W>(std::size_t i) { return load<W>(dy + i); }));
      add_to_channels(dot.data(), r, sum_over<V>(r, [&]<class W>(std::size_t i) {
                        return load<W>(dy + i) * load<W>(y + i);
                      }));
    });
  }

  layout form_;
  image_extent extent_;
  std::size_t values_per_channel_;
  float eps_, average_momentum_ = 0;
  bool uses_batch_;
  cpu_blob* top_;
  view x_, dx_;
  parameter_reader blobs_[3];
  std::span<float> change_[3];
  std::vector<float> mean_, variance_, scale_;  // by channel; zero in the padding of a layout
  buffer kept_;
  std::shared_ptr<scaled_normalization> pair_;
};

}  // namespace

std::unique_ptr<kernel> make_batch_norm(const layer_context& c) {
  return std::make_unique<batch_norm_kernel>(c);
}

}  // namespace poseidon::cpu
