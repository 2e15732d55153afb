// gpu/kernels/pooling.hpp - MAX, AVE and STOCHASTIC pooling of planes, with Caffe's windows.
//
// Shapes   x, dx [planes, height, width]; y, dy, choice [planes, out_height, out_width]
// Writes   outputs are overwritten; a gradient gathers from all windows of a pixel in their order, so it is the same
//          in every run.
#pragma once
#include "gpu/runtime.hpp"
#include "models/pool_shape.hpp"

#include <cstddef>
#include <cstdint>

namespace poseidon::gpu {

/// `choice` receives where in its plane each maximum is, -1 if nothing compared as larger than nothing (NaN).
void max_pool(stream& s, const pool_shape& p, std::size_t planes, const float* x, float* y,
              std::int32_t* choice);
/// The gradient of max_pool() and draw_pool().
void spread_to_choice(stream& s, const pool_shape& p, std::size_t planes,
                      const std::int32_t* choice, const float* dy, float* dx);

/// Sums divided by the window's size, in which padding counts and what lies beyond it does not.
void ave_pool(stream& s, const pool_shape& p, std::size_t planes, const float* x, float* y);
void ave_pool_backward(stream& s, const pool_shape& p, std::size_t planes, const float* dy,
                       float* dx);

/// The random numbers of one stochastic pooling in one pass, see models/random.hpp.
struct pool_draw {
  std::uint64_t seed = 0, first_sample = 0;
  std::uint32_t layer = 0;
};
/// One value of each window, drawn with a probability in proportion to it.
void draw_pool(stream& s, const pool_draw& draw, const pool_shape& p, std::size_t samples,
               std::size_t channels, const float* x, float* y, std::int32_t* choice);
/// The values' mean with themselves as weights.
void weighted_pool(stream& s, const pool_shape& p, std::size_t planes, const float* x, float* y);

}  // namespace poseidon::gpu
