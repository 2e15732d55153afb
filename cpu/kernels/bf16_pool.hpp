// cpu/kernels/bf16_pool.hpp - pooling over bfloat16: plane by plane in float32, which stays in the cache. So a gradient that several
// windows add to is rounded once.
#pragma once
#include "cpu/bfloat16.hpp"
#include "cpu/kernels/ave_pool.hpp"
#include "cpu/kernels/max_pool.hpp"
#include "cpu/layout.hpp"

#include <vector>

namespace poseidon::cpu {

/// The planes of a blob: of each image, one for each block of channels.
struct bf16_planes {
  block_places places;
  std::size_t images = 0, pixels = 0;  ///< of a plane
};

/// Calls pool(plane, from, to) with planes of float32, whose pixels hold Block channels each.
template <int Block, class Pool>
void each_wide_plane(const bf16_planes& of_from, const bfloat16* from, const bf16_planes& of_to,
                     bfloat16* to, Pool pool) {
  std::vector<float> wide_from(of_from.pixels * Block), wide_to(of_to.pixels * Block);
  const block_places f = of_from.places, t = of_to.places;
  for (std::size_t n = 0, plane = 0; n < of_from.images; ++n) {
    for (std::size_t b = 0; b < f.blocks; ++b, ++plane) {
      const bfloat16* x = from + n * f.image + b * f.block;
      bfloat16* y = to + n * t.image + b * t.block;
      if (f.pixel == Block)
        widen(x, wide_from.size(), wide_from.data());
      else
        for (std::size_t p = 0; p < of_from.pixels; ++p)
          widen(x + p * f.pixel, Block, wide_from.data() + p * Block);
      pool(plane, wide_from.data(), wide_to.data());
      if (t.pixel == Block)
        narrow(wide_to.data(), wide_to.size(), y);
      else
        for (std::size_t p = 0; p < of_to.pixels; ++p)
          narrow(wide_to.data() + p * Block, Block, y + p * t.pixel);
    }
  }
}

/// As the functions over float.
template <int Block>
void max_pool_forward(const pool_shape& s, const bf16_planes& of_x, const bfloat16* x,
                      const bf16_planes& of_y, bfloat16* y, std::uint8_t* choice) {
  const std::size_t out = s.out_plane() * Block;
  each_wide_plane<Block>(of_x, x, of_y, y, [&](std::size_t p, const float* from, float* to) {
    max_pool_forward<Block>(s, 1, from, to, choice + p * out);
  });
}

template <int Block>
void max_pool_backward(const pool_shape& s, const bf16_planes& of_dy, const bfloat16* dy,
                       const std::uint8_t* choice, const bf16_planes& of_dx, bfloat16* dx) {
  const std::size_t out = s.out_plane() * Block;
  each_wide_plane<Block>(of_dy, dy, of_dx, dx, [&](std::size_t p, const float* from, float* to) {
    max_pool_backward<Block>(s, 1, from, choice + p * out, to);
  });
}

template <int Block>
void ave_pool_forward(const pool_shape& s, const bf16_planes& of_x, const bfloat16* x,
                      const bf16_planes& of_y, bfloat16* y) {
  each_wide_plane<Block>(of_x, x, of_y, y, [&](std::size_t, const float* from, float* to) {
    ave_pool_forward<Block>(s, 1, from, to);
  });
}

template <int Block>
void ave_pool_backward(const pool_shape& s, const bf16_planes& of_dy, const bfloat16* dy,
                       const bf16_planes& of_dx, bfloat16* dx) {
  each_wide_plane<Block>(of_dy, dy, of_dx, dx, [&](std::size_t, const float* from, float* to) {
    ave_pool_backward<Block>(s, 1, from, to);
  });
}

}  // namespace poseidon::cpu
