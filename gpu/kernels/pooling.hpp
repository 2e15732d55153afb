// gpu/kernels/pooling.hpp - MAX, AVE and STOCHASTIC pooling of planes, with Caffe's windows.
//
// Shapes   x, dx [outer, height, width, inner]; y, dy, choice [outer, out_height, out_width, inner]
// Types    x and y, dy and dx are of one type; for draw_pool() it is float32
// Writes   outputs are overwritten; a gradient gathers from all windows of a pixel in their order, so it is the same
//          in every run.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/runtime/values.hpp"
#include "models/net/pool_shape.hpp"

#include <cstddef>
#include <cstdint>

namespace poseidon::gpu {

/// Planes that are pooled independently. NCHW has them one after the other: outer = images * channels, inner = 1. NHWC has
/// them side by side: outer = images, inner = channels.
struct pool_planes {
  std::size_t outer = 1, inner = 1;
  [[nodiscard]] std::size_t values(std::size_t area) const { return outer * area * inner; }
};

/// `choice` receives the place of each maximum in its plane; -1 if no value compares as larger (all are NaN), with
/// `only_positive` also where the maximum is not above 0.
void max_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x, values y,
              std::int32_t* choice, bool only_positive = false);
/// The gradient of max_pool() and draw_pool().
void spread_to_choice(stream& s, const pool_shape& p, const pool_planes& planes,
                      const std::int32_t* choice, const_values dy, values dx);

/// Sums divided by the window's size: padding counts, places beyond the padding do not.
void ave_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x, values y);
void ave_pool_backward(stream& s, const pool_shape& p, const pool_planes& planes, const_values dy,
                       values dx);

/// The random numbers of one stochastic pooling in one pass, see models/random.hpp.
struct pool_draw {
  std::uint64_t seed = 0, first_sample = 0;
  std::uint32_t layer = 0;
};
/// One value of each window, drawn with a probability in proportion to it. Planes lie one after the other.
void draw_pool(stream& s, const pool_draw& draw, const pool_shape& p, std::size_t samples,
               std::size_t channels, const float* x, float* y, std::int32_t* choice);
/// The values' mean with themselves as weights.
void weighted_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x,
                   values y);

}  // namespace poseidon::gpu
