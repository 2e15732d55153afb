// cpu/layers/stochastic_pool.cpp - Pooling with pool: STOCHASTIC: one value of the window, drawn with a
// probability in proportion to it; in TEST the values' mean with themselves as weights.
//
// Meant for inputs that are not negative (after a ReLU). The draw for output i of sample n is word i % 4
// of random_words(seed, pooling, layer, n, i / 4), so it does not depend on the node that computes the sample.
// Source   Zeiler & Fergus, "Stochastic pooling", ICLR 2013; Caffe has it on GPUs only.
#include "cpu/layer.hpp"
#include "models/net/pool_shape.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <cfloat>

namespace poseidon::cpu {
namespace {

class stochastic_kernel final : public kernel {
 public:
  stochastic_kernel(const layer_context& c, const pool_shape& s)
      : layer_(static_cast<std::uint32_t>(c.index)),
        draws_(c.training()),
        shape_(s),
        samples_(static_cast<std::size_t>(c.bottom_shape(0)[0])),
        channels_(static_cast<std::size_t>(c.bottom_shape(0)[1])),
        choice_(samples_ * channels_ * s.out_plane()),
        x_(c.bottom(0), part::data, layout::plain),
        y_(c.top(0), part::data, layout::plain) {
    if (!c.wants_diff(0)) return;
    if (!draws_) c.refuse("STOCHASTIC pooling has a gradient in TRAIN only.");
    dx_ = view(c.bottom(0), part::diff, layout::plain);
    dy_ = view(c.top(0), part::diff, layout::plain);
  }

  void forward(const pass& p) override {
    const float* x = x_.load();
    float* y = y_.memory();
    const std::size_t per_sample = channels_ * shape_.out_plane();
    for (std::size_t i = 0; i < choice_.size(); ++i) {
      const std::size_t plane = i / shape_.out_plane(), within = i % per_sample;
      const float* image = x + plane * shape_.in_plane();
      if (!draws_) {
        y[i] = weighted_mean(image, window(i));
        continue;
      }
      const auto words =
          random_words(p.seed, random_use::pooling, layer_, p.first_sample + i / per_sample,
                       static_cast<std::uint32_t>(within / 4));
      choice_[i] =
          static_cast<std::uint32_t>(draw(image, window(i), unit_float(words[within % 4])));
      y[i] = image[choice_[i]];
    }
    y_.store();
  }

  void backward(const pass&) override {
    if (!dx_.exists()) return;
    const float* dy = dy_.load();
    float* dx = dx_.memory();
    std::fill_n(dx, samples_ * channels_ * shape_.in_plane(), 0.0f);
    for (std::size_t i = 0; i < choice_.size(); ++i) {
      dx[i / shape_.out_plane() * shape_.in_plane() + choice_[i]] += dy[i];
    }
    dx_.store();
  }

 private:
  [[nodiscard]] pool_window window(std::size_t output) const {
    const auto place = static_cast<int>(output % shape_.out_plane());
    return window_at(shape_, place / shape_.out_width, place % shape_.out_width);
  }

  /// Calls f(place in the plane) for each value of a window until it answers true.
  template <class F>
  void each_until(const pool_window& w, F f) const {
    for (int row = w.top; row < w.bottom; ++row) {
      for (int column = w.left; column < w.right; ++column) {
        if (f(static_cast<std::size_t>(row) * shape_.width + column)) return;
      }
    }
  }

  /// The first place where the running sum reaches `where` (in [0, 1)) of the whole.
  [[nodiscard]] std::size_t draw(const float* image, const pool_window& w, float where) const {
    float whole = 0, sum = 0;
    std::size_t chosen = 0;
    each_until(w, [&](std::size_t at) { return whole += image[at], false; });
    each_until(w, [&](std::size_t at) { return chosen = at, (sum += image[at]) >= where * whole; });
    return chosen;
  }

  [[nodiscard]] float weighted_mean(const float* image, const pool_window& w) const {
    float weights = FLT_MIN, sum = 0;  // so that a window of zeros gives zero
    each_until(w, [&](std::size_t at) {
      weights += image[at];
      sum += image[at] * image[at];
      return false;
    });
    return sum / weights;
  }

  std::uint32_t layer_;
  bool draws_;
  pool_shape shape_;
  std::size_t samples_, channels_;
  std::vector<std::uint32_t> choice_;
  view x_, y_, dx_, dy_;
};

}  // namespace

std::unique_ptr<kernel> make_stochastic_pooling(const layer_context& c) {
  return std::make_unique<stochastic_kernel>(
      c, resolve_pooling(c.layer, c.bottom_shape(0), c.top_shape(0)));
}

}  // namespace poseidon::cpu
