// cpu/kernels/bf16_pool.hpp - pooling over bfloat16: plane by plane in float32, which stays in the cache. So a gradient that several
// windows add to is rounded once.
#pragma once
#include "cpu/bfloat16.hpp"
#include "cpu/kernels/ave_pool.hpp"
#include "cpu/kernels/max_pool.hpp"

#include <vector>

namespace poseidon::cpu {

/// Calls pool(plane, from, to) with planes of float32; `from` and `to` hold planes of these sizes.
template <class Pool>
void each_wide_plane(std::size_t planes, const bfloat16* from, std::size_t from_size, bfloat16* to,
                     std::size_t to_size, Pool pool) {
  std::vector<float> wide_from(from_size), wide_to(to_size);
  for (std::size_t p = 0; p < planes; ++p, from += from_size, to += to_size) {
    widen(from, from_size, wide_from.data());
    pool(p, wide_from.data(), wide_to.data());
    narrow(wide_to.data(), to_size, to);
  }
}

/// As the functions over float.
template <int Block>
void max_pool_forward(const pool_shape& s, std::size_t planes, const bfloat16* x, bfloat16* y,
                      std::uint8_t* choice) {
  const std::size_t out = s.out_plane() * Block;
  each_wide_plane(planes, x, s.in_plane() * Block, y, out,
                  [&](std::size_t p, const float* from, float* to) {
                    max_pool_forward<Block>(s, 1, from, to, choice + p * out);
                  });
}

template <int Block>
void max_pool_backward(const pool_shape& s, std::size_t planes, const bfloat16* dy,
                       const std::uint8_t* choice, bfloat16* dx) {
  const std::size_t out = s.out_plane() * Block;
  each_wide_plane(planes, dy, out, dx, s.in_plane() * Block,
                  [&](std::size_t p, const float* from, float* to) {
                    max_pool_backward<Block>(s, 1, from, choice + p * out, to);
                  });
}

template <int Block>
void ave_pool_forward(const pool_shape& s, std::size_t planes, const bfloat16* x, bfloat16* y) {
  each_wide_plane(
      planes, x, s.in_plane() * Block, y, s.out_plane() * Block,
      [&](std::size_t, const float* from, float* to) { ave_pool_forward<Block>(s, 1, from, to); });
}

template <int Block>
void ave_pool_backward(const pool_shape& s, std::size_t planes, const bfloat16* dy, bfloat16* dx) {
  each_wide_plane(
      planes, dy, s.out_plane() * Block, dx, s.in_plane() * Block,
      [&](std::size_t, const float* from, float* to) { ave_pool_backward<Block>(s, 1, from, to); });
}

}  // namespace poseidon::cpu
