// cpu/kernels/max_pool.hpp - max pooling with the place of each maximum. Any thread, no state.
#pragma once
#include "models/net/pool_shape.hpp"

#include <cstdint>

namespace poseidon::cpu {

/// Max pooling over `planes` planes of pixels that hold Block channels each (blocked layouts).
///
/// Shapes   x [planes, height, width, Block]   y, choice [planes, out_height, out_width, Block]
/// Writes   choice = row * kernel_w + column of the maximum within its window; the first of equals
///          wins, as in Caffe. Needs kernel_h * kernel_w <= 256.
template <int Block>
void max_pool_forward(const pool_shape& s, std::size_t planes, const float* x, float* y,
                      std::uint8_t* choice);

/// Writes   dx, all of it.
template <int Block>
void max_pool_backward(const pool_shape& s, std::size_t planes, const float* dy,
                       const std::uint8_t* choice, float* dx);

/// The two passes on plain planes; choice = index of the maximum within its plane, -1 for a window
/// without values.
void max_pool_forward_plain(const pool_shape& s, std::size_t planes, const float* x, float* y,
                            std::int32_t* choice);
void max_pool_backward_plain(const pool_shape& s, std::size_t planes, const float* dy,
                             const std::int32_t* choice, float* dx);

}  // namespace poseidon::cpu
