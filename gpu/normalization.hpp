// gpu/normalization.hpp - what a BatchNorm and the Scale in place behind it share, with the ReLU in place behind that: of
// ten times that their kernels would read or write a blob's values in forward() four are left, of thirteen in backward() five.
//
//   forward   BatchNorm finds the statistics; Scale normalises, keeps that, and writes y = relu(factor * it + bias)
//   backward  Scale sums over dy, which is the gradient of y; BatchNorm makes dx of the same dy
#pragma once
#include "gpu/kernels/channels.hpp"
#include "gpu/runtime.hpp"

namespace poseidon::gpu {

struct scaled_normalization {
  const_values x;  ///< BatchNorm's bottom
  channel_statistics statistics{};
  device_memory normalized;  ///< (x - mean) * scale, for backward(); none in a net without one
  device_memory own;         ///< what `after` and `means` are in
  /// What Scale does, [channels] each: copies, for by BatchNorm's backward() the parameters may be fresh ones.
  scaled_relu after{};
  float* means =
      nullptr;  ///< [2, channels]: of the gradient of the normalised values, and of its product with them
};

}  // namespace poseidon::gpu
