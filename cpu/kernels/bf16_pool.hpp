// cpu/kernels/bf16_pool.hpp
//
// Pooling over bfloat16, sixteen channels of a pixel at a time: sums are float32, and a gradient that several windows add to is rounded
// once. Needs a processor that multiplies_bf16(), which has AVX-512. Any thread, no state.
#pragma once
#include "cpu/bfloat16.hpp"
#include "cpu/layout.hpp"
#include "models/net/pool_shape.hpp"

#include <cstddef>
#include <cstdint>

namespace poseidon::cpu {

/// The images of a blob of bfloat16 in a layout with blocks of 16 channels.
struct bf16_images {
  block_places places;
  std::size_t count = 0;
};

/// Writes   y; choice = row * kernel_w + column of the maximum within its window, at the places of y; the first of equals wins, as in Caffe.
///          Needs kernel_h * kernel_w <= 256.
void max_pool_forward(const pool_shape& s, const bf16_images& of_x, const bfloat16* x,
                      const bf16_images& of_y, bfloat16* y, std::uint8_t* choice);
/// Writes   dx, all of it.
void max_pool_backward(const pool_shape& s, const bf16_images& of_dy, const bfloat16* dy,
                       const std::uint8_t* choice, const bf16_images& of_dx, bfloat16* dx);

/// With Caffe's divisors.  Writes   y, respectively dx, all of it.
void ave_pool_forward(const pool_shape& s, const bf16_images& of_x, const bfloat16* x,
                      const bf16_images& of_y, bfloat16* y);
void ave_pool_backward(const pool_shape& s, const bf16_images& of_dy, const bfloat16* dy,
                       const bf16_images& of_dx, bfloat16* dx);

}  // namespace poseidon::cpu
