// tests/reference/channel_layers.hpp - naive twins of BatchNorm and Scale: plain loops, double
// precision, [images, channels, plane].
#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

namespace poseidon::reference {

struct channel_blob {
  std::size_t images, channels, plane;
  [[nodiscard]] std::size_t per_channel() const { return images * plane; }
  /// Calls f(place) for each value of a channel.
  template <class F>
  void each(std::size_t channel, F f) const {
    for (std::size_t n = 0; n < images; ++n)
      for (std::size_t i = 0; i < plane; ++i) f((n * channels + channel) * plane + i);
  }
};

struct normalized {
  std::vector<double> y, mean, variance;  ///< biased variance
};

inline normalized normalize(const channel_blob& b, const std::vector<double>& x, double eps) {
  normalized r{std::vector<double>(x.size()), {}, {}};
  for (std::size_t c = 0; c < b.channels; ++c) {
    double mean = 0, variance = 0;
    b.each(c, [&](std::size_t i) { mean += x[i] / static_cast<double>(b.per_channel()); });
    b.each(c, [&](std::size_t i) {
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(b.per_channel());
    });
    b.each(c, [&](std::size_t i) { r.y[i] = (x[i] - mean) / std::sqrt(variance + eps); });
    r.mean.push_back(mean);
    r.variance.push_back(variance);
  }
  return r;
}

inline std::vector<double> normalize_backward(const channel_blob& b, const normalized& n,
                                              const std::vector<double>& dy, double eps) {
  std::vector<double> dx(dy.size());
  const auto m = static_cast<double>(b.per_channel());
  for (std::size_t c = 0; c < b.channels; ++c) {
    double sum = 0, dot = 0;
    b.each(c, [&](std::size_t i) { sum += dy[i], dot += dy[i] * n.y[i]; });
    b.each(c, [&](std::size_t i) {
      dx[i] = (dy[i] - sum / m - n.y[i] * dot / m) / std::sqrt(n.variance[c] + eps);
    });
  }
  return dx;
}

}  // namespace poseidon::reference
