// cpu/winograd/convolution.hpp
//
// Convolution by 3x3 and 5x5 windows with stride 1 in Winograd's way, F(4x4, 3x3) and F(4x4, 5x5): 36 and 64
// multiplications where the direct way takes 144 and 400. For blobs in blocks of eight channels (c8, AVX2) or of
// sixteen (c16, AVX-512); with c16_bf16 what is read and written is bfloat16, and all between is float32.
//
// Tiles of 4x4 outputs and the 6x6 or 8x8 inputs around them are transformed, some tiles at a time so that everything
// stays in the caches; what is left are 36 or 64 products of small matrices over the channels. The gradient of x is
// such a convolution with turned weights, and that of the weights takes the transposed matrices. Edges: inputs
// outside the image are zeros, outputs outside it are left away.
//
// Errors of about 1e-6 (3x3) and 4e-6 (5x5) of the largest output, where direct sums have 5e-7. The same values give
// the same bits.
#pragma once
#include "cpu/layout.hpp"

#include <cstddef>

namespace poseidon::cpu {

/// One side of a group of a convolution: planes in whole blocks of channels whose padding is zero.
struct winograd_image {
  std::size_t channels = 0, height = 0, width = 0;
  std::size_t sample_step = 0;  ///< values from a sample to the next, other groups included
};

/// One group; where there are several, their channels fill their blocks.
struct winograd_shape {
  std::size_t samples = 0;
  winograd_image in, out;
  /// Less than the taps; out.height is in.height + 2 * pad_h - taps + 1.
  std::size_t pad_h = 0, pad_w = 0;
};

/// What is added to and done with each output.
struct winograd_ending {
  const float* bias = nullptr;  ///< by output channel; null for none
  float slope = 1;              ///< negative outputs are multiplied by it
};

namespace winograd {

/// The passes of one group, for one window and one width of vectors. See winograd_convolution for what they do.
struct passes {
  std::size_t lanes;        ///< channels in a block
  std::size_t taps;         ///< the window's edge, 3 or 5
  std::size_t value_bytes;  ///< of what blobs hold; their memory counts as floats
  std::size_t (*scratch_floats)(const winograd_shape&);
  void (*forward)(const winograd_shape&, const float* x, const float* weights,
                  const winograd_ending&, float* y, float* scratch);
  void (*backward_data)(const winograd_shape&, const float* dy, const float* weights, float* dx,
                        float* scratch);
  void (*backward_weights)(const winograd_shape&, const float* x, const float* dy, float* dw,
                           float* db, float* scratch);
};
/// The passes for blobs in this layout: c8, or one of sixteen channels on processors with AVX-512.
[[nodiscard]] const passes& passes_for(layout form, std::size_t taps);

}  // namespace winograd

class winograd_convolution {
 public:
  /// `groups` of that shape, blobs in this blocked layout, windows of `taps` by `taps`.
  winograd_convolution(const winograd_shape& s, std::size_t groups, layout form, std::size_t taps);

  /// Floats that each of the passes needs at `scratch`, aligned to 64 bytes and with any contents.
  [[nodiscard]] std::size_t scratch_floats() const { return passes_.scratch_floats(shape_); }

  /// Weights and their gradient in all of these: Caffe's [groups * out, in, taps, taps].
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
  std::size_t groups_;
  const winograd::passes& passes_;
};

}  // namespace poseidon::cpu
