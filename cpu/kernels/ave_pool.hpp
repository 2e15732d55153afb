// cpu/kernels/ave_pool.hpp - average pooling with Caffe's divisors. Any thread, no state.
#pragma once
#include "models/net/pool_shape.hpp"

namespace poseidon::cpu {

/// Shapes   x, dx [planes, height, width, Block]   y, dy [planes, out_height, out_width, Block];
///          Block is 1 (plain), 8 or 16.
/// Writes   y, respectively dx, all of it.
template <int Block>
void ave_pool_forward(const pool_shape& s, std::size_t planes, const float* x, float* y);
template <int Block>
void ave_pool_backward(const pool_shape& s, std::size_t planes, const float* dy, float* dx);

}  // namespace poseidon::cpu
