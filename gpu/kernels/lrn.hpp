// gpu/kernels/lrn.hpp - local response normalisation: y = x * s^-beta, s = k + alpha / n * (sum of x^2 over n neighbours).
//
// Shapes   x, y, s, dy, dx [samples, channels, height, width], or across channels any that channel_shape can say; all
//          overwritten
// Types    all of one type; s is float32
// Source   Krizhevsky, Sutskever & Hinton, "ImageNet classification with deep convolutional neural networks",
//          NIPS 2012, §3.3.
#pragma once
#include "gpu/kernels/channels.hpp"

#include <cstddef>

namespace poseidon::gpu {

struct lrn_shape {
  channel_shape over;
  int height = 0, width = 0;  ///< a channel's plane; only within channels
  /// Neighbours are `size` channels at the same place, or size x size places of the same channel. Odd.
  int size = 5;
  bool within_channel = false;
  float alpha = 1, beta = 0.75f, k = 1;
};

/// Writes s to `sums` for the gradient.
void lrn_forward(stream& s, const lrn_shape& l, const_values x, values y, float* sums);
void lrn_backward(stream& s, const lrn_shape& l, const_values x, const_values y, const float* sums,
                  const_values dy, values dx);

}  // namespace poseidon::gpu
