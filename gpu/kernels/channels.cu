#include "gpu/kernels/channels.hpp"
#include "gpu/launch.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

/// Channels of places, and places of (channel, number in the channel).
struct places {
  index channels, plane;

  POSEIDON_HOST_DEVICE index channel_of(index i) const { return i / plane % channels; }
  POSEIDON_HOST_DEVICE index at(index channel, index k) const {
    return (k / plane * channels + channel) * plane + k % plane;
  }
};

places places_of(const channel_shape& c) {
  return {to_index(c.channels), to_index(c.plane)};
}

/// Two sums in one pass. In double: the squares of a mean far from 0 would not fit into a float beside the variance.
struct two_sums {
  double first, second;
};
struct add_sums {
  POSEIDON_HOST_DEVICE double operator()(double a, double b) const { return a + b; }
  POSEIDON_HOST_DEVICE two_sums operator()(two_sums a, two_sums b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

/// The same bits wherever it is asked for, so that all agree about where a ReLU lets through.
POSEIDON_HOST_DEVICE inline float scaled(float v, float factor, float bias) {
  return v * factor + bias;
}

/// What load(place) says of (channel, number in the channel), and of (row, column) where the channels are the columns.
template <class T, class Load>
struct by_channel {
  places p;
  Load load;
  POSEIDON_DEVICE T operator()(index channel, index k) const { return load(p.at(channel, k)); }
};
template <class T, class Load>
struct by_column {
  index columns;
  Load load;
  POSEIDON_DEVICE T operator()(index row, index column) const {
    return load(row * columns + column);
  }
};

/// store(channel, sum of load(place) over its places)
template <class T, class Load, class Store>
void sum_over_channels(stream& s, const channel_shape& c, Load load, Store store,
                       std::byte* scratch) {
  if (scratch != nullptr && c.plane == 1) {
    reduce_columns<T>(s, c.outer, c.channels, T{}, by_column<T, Load>{to_index(c.channels), load},
                      add_sums{}, store, scratch);
  } else {
    reduce_rows<T>(s, c.channels, c.per_channel(), T{}, by_channel<T, Load>{places_of(c), load},
                   add_sums{}, store);
  }
}

}  // namespace

std::size_t sum_scratch_bytes(const channel_shape& c) {
  return c.plane == 1 ? column_parts(c.outer, c.channels) * c.channels * sizeof(two_sums) : 0;
}

void scale_channels(stream& s, const channel_shape& c, const float* x, const float* factor,
                    const float* bias, float* y, float slope) {
  const places p = places_of(c);
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const index channel = p.channel_of(i);
    const float scaled = factor == nullptr ? x[i] : x[i] * factor[channel];
    const float v = bias == nullptr ? scaled : scaled + bias[channel];
    y[i] = v > 0 ? v : v * slope;
  });
}

void sum_channels(stream& s, const channel_shape& c, const float* x, float* sums,
                  std::byte* scratch) {
  sum_over_channels<double>(
      s, c, [=] POSEIDON_DEVICE(index at) { return double{x[at]}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      scratch);
}

void sum_channels_of_relu(stream& s, const channel_shape& c, const float* y, float slope, float* dy,
                          float* sums, std::byte* scratch) {
  sum_over_channels<double>(
      s, c,
      [=] POSEIDON_DEVICE(index at) {  // each place once
        const float d = y[at] > 0 ? dy[at] : dy[at] * slope;
        dy[at] = d;
        return double{d};
      },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      scratch);
}

void dot_channels(stream& s, const channel_shape& c, const float* x, const float* y, float* sums,
                  std::byte* scratch) {
  sum_over_channels<double>(
      s, c, [=] POSEIDON_DEVICE(index at) { return double{x[at]} * double{y[at]}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      scratch);
}

void prelu_forward(stream& s, const channel_shape& c, const float* x, const float* slope,
                   bool shared, float* y) {
  const places p = places_of(c);
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    y[i] = x[i] > 0 ? x[i] : x[i] * slope[shared ? 0 : p.channel_of(i)];
  });
}

void prelu_backward(stream& s, const channel_shape& c, const float* x, const float* slope,
                    bool shared, const float* dy, float* dx) {
  const places p = places_of(c);
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    dx[i] = x[i] > 0 ? dy[i] : dy[i] * slope[shared ? 0 : p.channel_of(i)];
  });
}

void prelu_gradient(stream& s, const channel_shape& c, const float* x, bool shared, const float* dy,
                    float* dslope, std::byte* scratch) {
  // Shared: one channel that is everything.
  sum_over_channels<double>(
      s, shared ? channel_shape{1, 1, c.values()} : c,
      [=] POSEIDON_DEVICE(index at) { return x[at] > 0 ? 0.0 : double{x[at]} * double{dy[at]}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { dslope[channel] = static_cast<float>(sum); },
      scratch);
}

void find_statistics(stream& s, const channel_shape& c, float eps, const float* x,
                     const channel_statistics& to, std::byte* scratch) {
  const channel_statistics t = to;
  const auto count = static_cast<double>(c.per_channel());
  sum_over_channels<two_sums>(
      s, c,
      [=] POSEIDON_DEVICE(index at) {
        const double v = x[at];
        return two_sums{v, v * v};
      },
      [=] POSEIDON_DEVICE(index channel, two_sums sum) {
        const double mean = sum.first / count, squares = sum.second / count - mean * mean;
        const float variance = static_cast<float>(squares > 0 ? squares : 0);
        t.mean[channel] = static_cast<float>(mean);
        t.variance[channel] = variance;
        t.scale[channel] = 1 / std::sqrt(variance + eps);
      },
      scratch);
}

void read_statistics(stream& s, std::size_t channels, float eps, const float* mean_sum,
                     const float* variance_sum, const float* factor, const channel_statistics& to) {
  const channel_statistics t = to;
  for_each(s, channels, [=] POSEIDON_DEVICE(index channel) {
    const float one_over = *factor == 0 ? 0 : 1 / *factor;
    const float variance = one_over * variance_sum[channel];
    t.mean[channel] = one_over * mean_sum[channel];
    t.variance[channel] = variance;
    t.scale[channel] = 1 / std::sqrt(variance + eps);
  });
}

void write_change(stream& s, const channel_shape& c, float weight, const channel_statistics& from,
                  float* mean_change, float* variance_change, float* factor_change) {
  const channel_statistics f = from;
  const auto m = static_cast<float>(c.per_channel());
  const float unbiased = m > 1 ? m / (m - 1) : 1;
  for_each(s, c.channels, [=] POSEIDON_DEVICE(index channel) {
    mean_change[channel] = weight * f.mean[channel];
    variance_change[channel] = weight * (unbiased * f.variance[channel]);
    if (channel == 0) *factor_change = weight;
  });
}

void normalize(stream& s, const channel_shape& c, const float* x, const channel_statistics& with,
               float* y, float* copy) {
  const places p = places_of(c);
  const channel_statistics w = with;
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const index channel = p.channel_of(i);
    const float v = (x[i] - w.mean[channel]) * w.scale[channel];
    y[i] = v;
    if (copy != nullptr) copy[i] = v;
  });
}

void normalize_backward(stream& s, const channel_shape& c, const float* y, const float* dy,
                        const float* scale, float* means, float* dx, std::byte* scratch) {
  const places p = places_of(c);
  const index channels = p.channels;
  const auto count = static_cast<double>(c.per_channel());
  sum_over_channels<two_sums>(
      s, c,
      [=] POSEIDON_DEVICE(index at) {
        return two_sums{double{dy[at]}, double{dy[at]} * double{y[at]}};
      },
      [=] POSEIDON_DEVICE(index channel, two_sums sum) {
        means[channel] = static_cast<float>(sum.first / count);
        means[channels + channel] = static_cast<float>(sum.second / count);
      },
      scratch);
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const index channel = p.channel_of(i);
    dx[i] = (dy[i] - means[channel] - y[i] * means[channels + channel]) * scale[channel];
  });
}

void normalize_scaled(stream& s, const channel_shape& c, const float* x,
                      const channel_statistics& with, const float* factor, const float* bias,
                      float slope, float* copy, float* y) {
  const places p = places_of(c);
  const channel_statistics w = with;
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const index channel = p.channel_of(i);
    const float v = (x[i] - w.mean[channel]) * w.scale[channel];
    const float z = scaled(v, factor[channel], bias == nullptr ? 0.0f : bias[channel]);
    if (copy != nullptr) copy[i] = v;
    y[i] = z > 0 ? z : z * slope;
  });
}

void sum_scaled(stream& s, const channel_shape& c, const float* normalized, const float* dy,
                const float* factor, const float* bias, const scaled_relu& after, float* dfactor,
                float* dbias, float* means, std::byte* scratch) {
  const places p = places_of(c);
  const scaled_relu a = after;
  const index channels = p.channels;
  const auto count = static_cast<double>(c.per_channel());
  sum_over_channels<two_sums>(
      s, c,
      [=] POSEIDON_DEVICE(index at) {
        const index channel = p.channel_of(at);
        const float v = normalized[at];
        const float z = scaled(v, factor[channel], bias == nullptr ? 0.0f : bias[channel]);
        const double d = z > 0 ? dy[at] : dy[at] * a.slope;
        return two_sums{d, d * double{v}};
      },
      [=] POSEIDON_DEVICE(index channel, two_sums sum) {
        const double f = factor[channel];
        a.factor[channel] = factor[channel];
        a.bias[channel] = bias == nullptr ? 0.0f : bias[channel];
        if (dbias != nullptr) dbias[channel] = static_cast<float>(sum.first);
        if (dfactor != nullptr) dfactor[channel] = static_cast<float>(sum.second);
        means[channel] = static_cast<float>(f * sum.first / count);
        means[channels + channel] = static_cast<float>(f * sum.second / count);
      },
      scratch);
}

void normalize_scaled_backward(stream& s, const channel_shape& c, const float* normalized,
                               const float* dy, const scaled_relu& after, const float* scale,
                               const float* means, float* dx) {
  const places p = places_of(c);
  const scaled_relu a = after;
  const index channels = p.channels;
  for_each(s, c.values(), [=] POSEIDON_DEVICE(index i) {
    const index channel = p.channel_of(i);
    const float v = normalized[i];
    const float z = scaled(v, a.factor[channel], a.bias[channel]);
    const float g = (z > 0 ? dy[i] : dy[i] * a.slope) * a.factor[channel];
    dx[i] = (g - means[channel] - v * means[channels + channel]) * scale[channel];
  });
}

}  // namespace poseidon::gpu
