#include "gpu/kernels/channel_sums.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

/// Two sums in one pass. In double: the squares of a mean far from 0 would not fit into a float beside the variance.
struct two_sums {
  double first, second;
};
POSEIDON_HOST_DEVICE inline two_sums operator+(two_sums a, two_sums b) {
  return {a.first + b.first, a.second + b.second};
}

/// One function for all kernels, so that all of them compute the same bits and agree about the sign that a ReLU sees.
POSEIDON_HOST_DEVICE inline float normalized(float x, float mean, float scale) {
  return (x - mean) * scale;
}
POSEIDON_HOST_DEVICE inline float scaled(float v, float factor, float bias) {
  return v * factor + bias;
}

}  // namespace

std::size_t sum_scratch_bytes(const channel_shape& c) {
  return sum_scratch_bytes_of<two_sums>(c);
}

void scale_channels(stream& s, const channel_shape& c, const_values x, const float* factor,
                    const float* bias, values y, float slope) {
  map_by_channel(
      s, c, numbers(channel_number(factor, 1), bias), y,
      [=] POSEIDON_DEVICE(index, float of_factor, float of_bias, float of_x) {
        const float v = scaled(of_x, of_factor, of_bias);
        return v > 0 ? v : v * slope;
      },
      x);
}

void sum_channels(stream& s, const channel_shape& c, const_values x, float* sums,
                  std::byte* scratch) {
  sum_by_channel<double>(
      s, c, numbers(), scratch, [=] POSEIDON_DEVICE(index, float v) { return double{v}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      x);
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
  sum_and_change_by_channel<double>(
      s, c, numbers(), scratch, dy,
      [=] POSEIDON_DEVICE(index, float of_y, float d) {
        const float g = of_y > 0 ? d : d * slope;
        return changed<double>{double{g}, g};
      },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      y, dy);
}

void dot_channels(stream& s, const channel_shape& c, const_values x, const_values y, float* sums,
                  std::byte* scratch) {
  sum_by_channel<double>(
      s, c, numbers(), scratch,
      [=] POSEIDON_DEVICE(index, float a, float b) { return double{a} * double{b}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { sums[channel] = static_cast<float>(sum); },
      x, y);
}

void prelu_forward(stream& s, const channel_shape& c, const_values x, const float* slope,
                   bool shared, values y) {
  const by_channel::places p(c);
  map(
      s, c.values(), y,
      [=] POSEIDON_DEVICE(index i, float v) {
        return v > 0 ? v : v * slope[shared ? 0 : p.channel_of(i)];
      },
      x);
}

void prelu_backward(stream& s, const channel_shape& c, const_values x, const float* slope,
                    bool shared, const_values dy, values dx) {
  const by_channel::places p(c);
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
  sum_by_channel<double>(
      s, shared ? channel_shape{1, 1, c.values()} : c, numbers(), scratch,
      [=] POSEIDON_DEVICE(index, float v, float d) { return v > 0 ? 0.0 : double{v} * double{d}; },
      [=] POSEIDON_DEVICE(index channel, double sum) { dslope[channel] = static_cast<float>(sum); },
      x, dy);
}

void find_statistics(stream& s, const channel_shape& c, float eps, const_values x,
                     const channel_statistics& to, std::byte* scratch) {
  const channel_statistics t = to;
  const auto count = static_cast<double>(c.per_channel());
  sum_by_channel<two_sums>(
      s, c, numbers(), scratch,
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
      x);
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
  map_to_two_by_channel(
      s, c, numbers(with.mean, with.scale), y, copy,
      [=] POSEIDON_DEVICE(index, float mean, float scale, float of_x) {
        const float v = normalized(of_x, mean, scale);
        return two_floats{v, v};
      },
      x);
}

void normalize_backward(stream& s, const channel_shape& c, const_values y, const_values dy,
                        const float* scale, float* means, values dx, std::byte* scratch) {
  const index channels = to_index(c.channels);
  const auto count = static_cast<double>(c.per_channel());
  sum_by_channel<two_sums>(
      s, c, numbers(), scratch,
      [=] POSEIDON_DEVICE(index, float of_y, float d) {
        return two_sums{double{d}, double{d} * double{of_y}};
      },
      [=] POSEIDON_DEVICE(index channel, two_sums sum) {
        means[channel] = static_cast<float>(sum.first / count);
        means[channels + channel] = static_cast<float>(sum.second / count);
      },
      y, dy);
  map_by_channel(
      s, c, numbers(means, means + channels, scale), dx,
      [=] POSEIDON_DEVICE(index, float mean, float mean_with_y, float of_scale, float of_y,
                          float d) { return (d - mean - of_y * mean_with_y) * of_scale; },
      y, dy);
}

void normalize_scaled(stream& s, const channel_shape& c, const_values x,
                      const channel_statistics& with, const float* factor, const float* bias,
                      float slope, values copy, values y) {
  map_to_two_by_channel(
      s, c, numbers(with.mean, with.scale, factor, bias), y, copy,
      [=] POSEIDON_DEVICE(index, float mean, float scale, float of_factor, float of_bias,
                          float of_x) {
        const float z = scaled(normalized(of_x, mean, scale), of_factor, of_bias);
        return two_floats{z > 0 ? z : z * slope, of_x};
      },
      x);
}

void normalize_scale_and_add(stream& s, const channel_shape& c, const_values x,
                             const channel_statistics& with, const float* factor, const float* bias,
                             float a, float b, const_values other, float slope, values y) {
  map_by_channel(
      s, c, numbers(with.mean, with.scale, factor, bias), y,
      [=] POSEIDON_DEVICE(index, float mean, float scale, float of_factor, float of_bias,
                          float of_x, float of_other) {
        const float z = scaled(normalized(of_x, mean, scale), of_factor, of_bias);
        const float sum = a * z + b * of_other;
        return sum > 0 ? sum : sum * slope;
      },
      x, other);
}

void sum_scaled(stream& s, const channel_shape& c, const_values x, const channel_statistics& with,
                const_values dy, const float* factor, const float* bias, const scaled_relu& after,
                float* dfactor, float* dbias, float* means, std::byte* scratch) {
  const scaled_relu a = after;
  const index channels = to_index(c.channels);
  const auto count = static_cast<double>(c.per_channel());
  sum_by_channel<two_sums>(
      s, c, numbers(with.mean, with.scale, factor, bias), scratch,
      [=] POSEIDON_DEVICE(index, float mean, float scale, float of_factor, float of_bias,
                          float of_x, float of_dy) {
        const float v = normalized(of_x, mean, scale), z = scaled(v, of_factor, of_bias);
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
      x, dy);
}

void normalize_scaled_backward(stream& s, const channel_shape& c, const_values x,
                               const channel_statistics& with, const_values dy,
                               const scaled_relu& after, const float* means, values dx) {
  const float slope = after.slope;
  map_by_channel(
      s, c, numbers(with.mean, with.scale, after.factor, after.bias, means, means + c.channels), dx,
      [=] POSEIDON_DEVICE(index, float mean, float scale, float factor, float bias, float mean_g,
                          float mean_gv, float of_x, float d) {
        const float v = normalized(of_x, mean, scale), z = scaled(v, factor, bias);
        const float g = (z > 0 ? d : d * slope) * factor;
        return (g - mean_g - v * mean_gv) * scale;
      },
      x, dy);
}

}  // namespace poseidon::gpu
