// gpu/kernels/channels.hpp
//
// Kernels over blobs whose channels each have numbers of their own: biases, factors, slopes, means. A blob is seen as
// [outer, channels, plane]: the axes before those of the channels are joined to one, and so are the axes behind.
// Types    blobs of one call are of one type; numbers of channels are float32.
// Writes   outputs are overwritten; an output of a blob's size may be its input's own memory.
// Sums     where channels lie side by side, as in NHWC, kernels that sum over a channel need `scratch` of
//          sum_scratch_bytes(), which they overwrite, to read memory in its order; with null they are correct, and slow.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/runtime/values.hpp"

#include <cstddef>

namespace poseidon::gpu {

struct channel_shape {
  std::size_t outer = 1, channels = 1, plane = 1;

  [[nodiscard]] std::size_t values() const { return outer * channels * plane; }
  [[nodiscard]] std::size_t per_channel() const { return outer * plane; }
};

/// 0 where channels do not lie side by side: their sums need no scratch.
[[nodiscard]] std::size_t sum_scratch_bytes(const channel_shape& c);

/// y = x * factor[c] + bias[c]; a null factor is 1, a null bias 0. A result that is not above 0 is multiplied by `slope`.
void scale_channels(stream& s, const channel_shape& c, const_values x, const float* factor,
                    const float* bias, values y, float slope = 1);
/// sums[c] = sum of x
void sum_channels(stream& s, const channel_shape& c, const_values x, float* sums,
                  std::byte* scratch = nullptr);
/// The gradient of a ReLU in place, dy *= slope where y is not above 0, and the sums of the new dy.
void sum_channels_of_relu(stream& s, const channel_shape& c, const_values y, float slope, values dy,
                          float* sums, std::byte* scratch = nullptr);
/// sums[c] = sum of x y
void dot_channels(stream& s, const channel_shape& c, const_values x, const_values y, float* sums,
                  std::byte* scratch = nullptr);

/// y = x where x > 0, else x * slope[c], or x * slope[0] where `shared`.
void prelu_forward(stream& s, const channel_shape& c, const_values x, const float* slope,
                   bool shared, values y);
void prelu_backward(stream& s, const channel_shape& c, const_values x, const float* slope,
                    bool shared, const_values dy, values dx);
/// dslope, [channels] or [1]
void prelu_gradient(stream& s, const channel_shape& c, const_values x, bool shared, const_values dy,
                    float* dslope, std::byte* scratch = nullptr);

/// The numbers of a normalisation's channels, [channels] each: scale = 1 / sqrt(variance + eps).
struct channel_statistics {
  float *mean, *variance, *scale;
};
/// The statistics of x. The variance is the sum of squares divided by the values, as it is used to normalise.
void find_statistics(stream& s, const channel_shape& c, float eps, const_values x,
                     const channel_statistics& to, std::byte* scratch = nullptr);
/// The statistics from Caffe's running sums, which are divided by the one value of a third blob; 0 means an empty sum.
void read_statistics(stream& s, std::size_t channels, float eps, const float* mean_sum,
                     const float* variance_sum, const float* factor, const channel_statistics& to);
/// The summands of a pass for the running sums: weight times the mean, the unbiased variance, and 1.
void write_change(stream& s, const channel_shape& c, float weight, const channel_statistics& from,
                  float* mean_change, float* variance_change, float* factor_change);
/// y = (x - mean) * scale, also written to `copy` unless that is null.
void normalize(stream& s, const channel_shape& c, const_values x, const channel_statistics& with,
               values y, values copy);
/// dx = (dy - mean of dy - y * mean of (dy y)) * scale, the gradient where the statistics are the batch's.
/// `means` [2, channels] is scratch.
void normalize_backward(stream& s, const channel_shape& c, const_values y, const_values dy,
                        const float* scale, float* means, values dx, std::byte* scratch = nullptr);

/// y = v * factor + bias of a normalised v = (x - mean) * scale, and the ReLU behind it, by channel. A null bias is 0. The
/// slope is not negative, so x alone tells where y is above 0.
struct scaled_relu {
  float *factor, *bias;
  float slope;
};
/// normalize(), scale and ReLU, and x to `copy` unless that is null, for y may be x's own memory.
void normalize_scaled(stream& s, const channel_shape& c, const_values x,
                      const channel_statistics& with, const float* factor, const float* bias,
                      float slope, values copy, values y);
/// y = relu(a (normalised x * factor + bias) + b other), with a ReLU of this slope.
void normalize_scale_and_add(stream& s, const channel_shape& c, const_values x,
                             const channel_statistics& with, const float* factor, const float* bias,
                             float a, float b, const_values other, float slope, values y);
/// Reads dy, the gradient of y, and x. Writes the gradients of factor and bias that are not null, the means for
/// normalize_scaled_backward(), and copies of factor and bias to `after`, whose slope counts.
void sum_scaled(stream& s, const channel_shape& c, const_values x, const channel_statistics& with,
                const_values dy, const float* factor, const float* bias, const scaled_relu& after,
                float* dfactor, float* dbias, float* means, std::byte* scratch = nullptr);
/// dx = (g - mean of g - v * mean of (g v)) * scale, where g is the gradient of the normalised values v.
void normalize_scaled_backward(stream& s, const channel_shape& c, const_values x,
                               const channel_statistics& with, const_values dy,
                               const scaled_relu& after, const float* means, values dx);

}  // namespace poseidon::gpu
