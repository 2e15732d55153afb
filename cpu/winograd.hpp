// cpu/winograd.hpp
//
// Convolution by 5x5 windows with stride 1 in Winograd's way, F(4x4, 5x5): 64 multiplications where the
// direct way takes 400. For processors with AVX-512 and blobs in layout c16.
//
// Tiles of 4x4 outputs and the 8x8 inputs around them are transformed, a few tiles at a time so that
// everything stays in a second-level cache; what is left are 64 products of small matrices over the channels.
// The gradient of x is such a convolution with turned weights, and that of the weights takes the transposed
// matrices. Edges: inputs outside the image are zeros, outputs outside it are left away.
//
// Errors of about 4e-6 of the largest output, where direct sums have 5e-7. The same values give the same bits.
#pragma once
#include <cstddef>

namespace poseidon::cpu {

/// One side of a group of a convolution: planes in whole blocks of sixteen channels whose padding is zero.
struct winograd_image {
  std::size_t channels = 0, height = 0, width = 0;
  std::size_t sample_step = 0;  ///< floats from a sample to the next, other groups included
};

/// One group; where there are several, their channels fill their blocks.
struct winograd_shape {
  std::size_t samples = 0;
  winograd_image in, out;
  std::size_t pad_h = 0, pad_w = 0;  ///< at most 4; out.height is in.height + 2 * pad_h - 4
};

/// What is added to and done with each output.
struct winograd_ending {
  const float* bias = nullptr;  ///< by output channel; null for none
  float slope = 1;              ///< negative outputs are multiplied by it
};

class winograd_convolution {
 public:
  winograd_convolution() = default;
  /// `groups` of that shape.
  winograd_convolution(const winograd_shape& s, std::size_t groups);

  /// Floats that each of the passes needs at `scratch`, aligned to 64 bytes and with any contents.
  [[nodiscard]] std::size_t scratch_floats() const { return scratch_; }

  /// Weights and their gradient in all of these: Caffe's [groups * out, in, 5, 5].
  /// Writes   y, padding included.
  void forward(const float* x, const float* weights, const winograd_ending& ending, float* y,
               float* scratch) const;
  /// Writes   dx, padding included.
  void backward_data(const float* dy, const float* weights, float* dx, float* scratch) const;
  /// Writes   dw; db (by output channel) unless it is null.
  void backward_weights(const float* x, const float* dy, float* dw, float* db,
                        float* scratch) const;

 private:
  /// Calls f(floats to a group's part of x, of y, of the weights, of the bias).
  template <class F>
  void each_group(F f) const;

  winograd_shape shape_;
  std::size_t groups_ = 1;
  std::size_t scratch_ = 0;
};

}  // namespace poseidon::cpu
