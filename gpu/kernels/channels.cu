#include "gpu/divisor.hpp"
#include "gpu/kernels/channels.hpp"
#include "gpu/map.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

/// Channels of places, and places of (channel, number in the channel).
struct places {
  divisor plane, channels;

  POSEIDON_HOST_DEVICE index channel_of(index i) const {
    return channels.remainder(plane.quotient(i));
  }
  POSEIDON_HOST_DEVICE index at(index channel, index k) const {
    return (plane.quotient(k) * channels.by() + channel) * plane.by() + plane.remainder(k);
  }
};

places places_of(const channel_shape& c) {
  return {divisor(to_index(c.plane)), divisor(to_index(c.channels))};
}

/// Two sums in one pass. In double: the squares of a mean far from 0 would not fit into a float beside the variance.
struct two_sums {
  double first, second;
};
POSEIDON_HOST_DEVICE inline two_sums operator+(two_sums a, two_sums b) {
  return {a.first + b.first, a.second + b.second};
}
struct add {
  template <class S>
  POSEIDON_HOST_DEVICE S operator()(S a, S b) const {
    return a + b;
  }
};

/// The same bits wherever it is asked for, so that all agree about where a ReLU lets through.
POSEIDON_HOST_DEVICE inline float scaled(float v, float factor, float bias) {
  return v * factor + bias;
}

/// What f says of (channel, number in the channel).
template <class S, class T, class F, std::size_t N>
struct by_channel {
  places p;
  F f;
  mapping::inputs<T, N> x;
  POSEIDON_DEVICE S operator()(index channel, index k) const {
    const index i = p.at(channel, k);
    T in[N];
    for (std::size_t o = 0; o < N; ++o) in[o] = x.at[o][i];
    return mapping::call(f, i, in, std::make_index_sequence<N>{});
  }
};

/// store(channel, sum of f(place, values there...) over its places)
template <class S, class F, class Store, class X, class... More>
void sum_over_channels(stream& s, const channel_shape& c, const F& f, const Store& store,
                       std::byte* scratch, const X& x, const More&... more) {
  if (scratch != nullptr && c.plane == 1)
    return sum_columns<S>(s, c.outer, c.channels, scratch, f, store, x, more...);
  with_type_of(x, [&](auto one) {
    using T = decltype(one);
    const mapping::inputs<T, 1 + sizeof...(More)> in{
        {static_cast<const T*>(x), static_cast<const T*>(more)...}};
    reduce_rows<S>(s, c.channels, c.per_channel(), S{},
                   by_channel<S, T, F, 1 + sizeof...(More)>{places_of(c), f, in}, add{}, store);
  });
}

}  // namespace

std::size_t sum_scratch_bytes(const channel_shape& c) {
  return c.plane == 1 ? column_scratch_bytes<two_sums>(c.outer, c.channels) : 0;
}

void scale_channels(stream& s, const channel_shape& c, const_values x, const float* factor,
                    const float* bias, values y, float slope) {
  const places p = places_of(c);
  map(
      s, c.values(), y,
      [=] POSEIDON_DEVICE(index i, float of_x) {
        const index channel = p.channel_of(i);
        const float scaled = factor == nullptr ? of_x : of_x * factor[channel];
        const float v = bias == nullptr ? scaled : scaled + bias[channel];
        return v > 0 ? v : v * slope;
      },
      x);
}

void sum_channels(stream& s, const channel_shape& c, const_values x, float* sums,
                  std::byte* scratch) {
  sum_over_channels<double>(
      s, c, [=] POSEIDON_DEVICE(index, float v) { return double{v}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      scratch, x);
}

void sum_channels_of_relu(stream& s, const channel_shape& c, const_values y, float slope, values dy,
                          float* sums, std::byte* scratch) {
  if (scratch == nullptr || c.plane != 1) {
    map(
        s, c.values(), dy,
        [=] POSEIDON_DEVICE(index, float of_y, float d) { return of_y > 0 ? d : d * slope; }, y,
        dy);
    return sum_channels(s, c, dy, sums, scratch);
  }
  sum_and_change_columns<double>(
      s, c.outer, c.channels, scratch, dy,
      [=] POSEIDON_DEVICE(index, float of_y, float d) {
        const float g = of_y > 0 ? d : d * slope;
        return changed<double>{double{g}, g};
      },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      y, dy);
}

void dot_channels(stream& s, const channel_shape& c, const_values x, const_values y, float* sums,
                  std::byte* scratch) {
  sum_over_channels<double>(
      s, c, [=] POSEIDON_DEVICE(index, float a, float b) { return double{a} * double{b}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      scratch, x, y);
}

void prelu_forward(stream& s, const channel_shape& c, const_values x, const float* slope,
                   bool shared, values y) {
  const places p = places_of(c);
  map(
      s, c.values(), y,
      [=] POSEIDON_DEVICE(index i, float v) {
        return v > 0 ? v : v * slope[shared ? 0 : p.channel_of(i)];
      },
      x);
}

void prelu_backward(stream& s, const channel_shape& c, const_values x, const float* slope,
                    bool shared, const_values dy, values dx) {
  const places p = places_of(c);
  map(
      s, c.values(), dx,
      [=] POSEIDON_DEVICE(index i, float v, float d) {
        return v > 0 ? d : d * slope[shared ? 0 : p.channel_of(i)];
      },
      x, dy);
}

void prelu_gradient(stream& s, const channel_shape& c, const_values x, bool shared, const_values dy,
                    float* dslope, std::byte* scratch) {
  // Shared: one channel that is everything.
  sum_over_channels<double>(
      s, shared ? channel_shape{1, 1, c.values()} : c,
      [=] POSEIDON_DEVICE(index, float v, float d) { return v > 0 ? 0.0 : double{v} * double{d}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { dslope[channel] = static_cast<float>(sum); },
      scratch, x, dy);
}

void find_statistics(stream& s, const channel_shape& c, float eps, const_values x,
                     const channel_statistics& to, std::byte* scratch) {
  const channel_statistics t = to;
  const auto count = static_cast<double>(c.per_channel());
  sum_over_channels<two_sums>(
      s, c,
      [=] POSEIDON_DEVICE(index, float of_x) {
        const double v = of_x;
        return two_sums{v, v * v};
      },
      [=] POSEIDON_DEVICE(index channel, two_sums sum) {
        const double mean = sum.first / count, squares = sum.second / count - mean * mean;
        const float variance = static_cast<float>(squares > 0 ? squares : 0);
        t.mean[channel] = static_cast<float>(mean);
        t.variance[channel] = variance;
        t.scale[channel] = 1 / std::sqrt(variance + eps);
      },
      scratch, x);
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

void normalize(stream& s, const channel_shape& c, const_values x, const channel_statistics& with,
               values y, values copy) {
  const places p = places_of(c);
  const channel_statistics w = with;
  map_to_two(
      s, c.values(), y, copy,
      [=] POSEIDON_DEVICE(index i, float of_x) {
        const index channel = p.channel_of(i);
        const float v = (of_x - w.mean[channel]) * w.scale[channel];
        return two_floats{v, v};
      },
      x);
}

void normalize_backward(stream& s, const channel_shape& c, const_values y, const_values dy,
                        const float* scale, float* means, values dx, std::byte* scratch) {
  const places p = places_of(c);
  const index channels = to_index(c.channels);
  const auto count = static_cast<double>(c.per_channel());
  sum_over_channels<two_sums>(
      s, c,
      [=] POSEIDON_DEVICE(index, float of_y, float d) {
        return two_sums{double{d}, double{d} * double{of_y}};
      },
      [=] POSEIDON_DEVICE(index channel, two_sums sum) {
        means[channel] = static_cast<float>(sum.first / count);
        means[channels + channel] = static_cast<float>(sum.second / count);
      },
      scratch, y, dy);
  map(
      s, c.values(), dx,
      [=] POSEIDON_DEVICE(index i, float of_y, float d) {
        const index channel = p.channel_of(i);
        return (d - means[channel] - of_y * means[channels + channel]) * scale[channel];
      },
      y, dy);
}

void normalize_scaled(stream& s, const channel_shape& c, const_values x,
                      const channel_statistics& with, const float* factor, const float* bias,
                      float slope, values copy, values y) {
  const places p = places_of(c);
  const channel_statistics w = with;
  map_to_two(
      s, c.values(), y, copy,
      [=] POSEIDON_DEVICE(index i, float of_x) {
        const index channel = p.channel_of(i);
        const float v = (of_x - w.mean[channel]) * w.scale[channel];
        const float z = scaled(v, factor[channel], bias == nullptr ? 0.0f : bias[channel]);
        return two_floats{z > 0 ? z : z * slope, v};
      },
      x);
}

void sum_scaled(stream& s, const channel_shape& c, const_values normalized, const_values dy,
                const float* factor, const float* bias, const scaled_relu& after, float* dfactor,
                float* dbias, float* means, std::byte* scratch) {
  const places p = places_of(c);
  const scaled_relu a = after;
  const index channels = to_index(c.channels);
  const auto count = static_cast<double>(c.per_channel());
  sum_over_channels<two_sums>(
      s, c,
      [=] POSEIDON_DEVICE(index i, float v, float of_dy) {
        const index channel = p.channel_of(i);
        const float z = scaled(v, factor[channel], bias == nullptr ? 0.0f : bias[channel]);
        const double d = z > 0 ? of_dy : of_dy * a.slope;
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
      scratch, normalized, dy);
}

void normalize_scaled_backward(stream& s, const channel_shape& c, const_values normalized,
                               const_values dy, const scaled_relu& after, const float* scale,
                               const float* means, values dx) {
  const places p = places_of(c);
  const scaled_relu a = after;
  const index channels = to_index(c.channels);
  map(
      s, c.values(), dx,
      [=] POSEIDON_DEVICE(index i, float v, float d) {
        const index channel = p.channel_of(i);
        const float z = scaled(v, a.factor[channel], a.bias[channel]);
        const float g = (z > 0 ? d : d * a.slope) * a.factor[channel];
        return (g - means[channel] - v * means[channels + channel]) * scale[channel];
      },
      normalized, dy);
}

}  // namespace poseidon::gpu
