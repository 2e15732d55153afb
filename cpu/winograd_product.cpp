#include "cpu/winograd_product.hpp"

namespace poseidon::cpu::winograd {
namespace {

constexpr std::size_t rows_at_once = 8;  ///< of a product, held in registers

/// m = u * v at one point, for `Blocks` blocks of columns. u [rows, depth] lies in blocks of sixteen of its
/// columns, v [depth, columns] and m [rows, columns] in blocks of theirs.
template <std::size_t Blocks>
POSEIDON_WIDE void multiply_blocks(const float* u, std::size_t depth, const float* v,
                                   std::size_t v_step, float* m, std::size_t rows) {
  constexpr std::size_t step = tiles_at_once * lanes;
  for (std::size_t t = 0; t < rows; t += rows_at_once) {
    __m512 sum[rows_at_once][Blocks];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = _mm512_setzero_ps();
    const float* row = v;
    for (std::size_t c = 0; c < depth; c += lanes) {
      const float* a = u + c * tiles_at_once + t * lanes;
      const std::size_t here = std::min(lanes, depth - c);
      for (std::size_t k = 0; k < here; ++k, row += lanes) {
        __m512 w[Blocks];
#pragma GCC unroll 4
        for (std::size_t b = 0; b < Blocks; ++b) w[b] = _mm512_load_ps(row + b * v_step);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < rows_at_once; ++r) {
          const __m512 x = _mm512_set1_ps(a[r * lanes + k]);
#pragma GCC unroll 4
          for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = _mm512_fmadd_ps(x, w[b], sum[r][b]);
        }
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b)
        _mm512_store_ps(m + b * step + (t + r) * lanes, sum[r][b]);
  }
}

/// s += transpose(u) * v at one point, for sixteen columns of u and `Blocks` blocks of v's; over `tiles` rows.
template <std::size_t Blocks>
POSEIDON_WIDE void add_blocks(const float* u, const float* v, std::size_t tiles, float* s,
                              std::size_t s_step) {
  constexpr std::size_t step = tiles_at_once * lanes;
  for (std::size_t c = 0; c < lanes; c += rows_at_once) {
    __m512 sum[rows_at_once][Blocks];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b)
        sum[r][b] = _mm512_load_ps(s + (c + r) * lanes + b * s_step);
    for (std::size_t t = 0; t < tiles; ++t) {
      __m512 w[Blocks];
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) w[b] = _mm512_load_ps(v + b * step + t * lanes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < rows_at_once; ++r) {
        const __m512 x = _mm512_set1_ps(u[t * lanes + c + r]);
#pragma GCC unroll 4
        for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = _mm512_fmadd_ps(x, w[b], sum[r][b]);
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b)
        _mm512_store_ps(s + (c + r) * lanes + b * s_step, sum[r][b]);
  }
}

}  // namespace

void multiply(const winograd_shape& s, std::size_t count, const float* inputs, const float* weights,
              float* products, const prefetcher& ahead) {
  const spectrum u = tiles_of(s.in), m = tiles_of(s.out);
  const spectrum v = weights_of(s.in.channels, s.out.channels);
  const std::size_t rows = (count + rows_at_once - 1) / rows_at_once * rows_at_once;
  for (std::size_t p = 0; p < all_points; ++p) {
    ahead.part(p);
    const float* from = inputs + p * u.point_step();
    const float* w = weights + p * v.point_step();
    float* to = products + p * m.point_step();
    for (std::size_t b = 0; b < m.blocks; b += 2) {
      const auto run = b + 1 < m.blocks ? multiply_blocks<2> : multiply_blocks<1>;
      run(from, s.in.channels, w + b * v.block_step(), v.block_step(), to + b * m.block_step(),
          rows);
    }
  }
}

void add_products(const winograd_shape& s, std::size_t count, const float* inputs,
                  const float* gradients, float* sums, const prefetcher& ahead) {
  const spectrum u = tiles_of(s.in), m = tiles_of(s.out);
  const spectrum v = weights_of(s.in.channels, s.out.channels);
  for (std::size_t p = 0; p < all_points; ++p) {
    ahead.part(p);
    for (std::size_t c = 0; c < u.blocks; ++c) {
      const float* from = inputs + p * u.point_step() + c * u.block_step();
      const float* d = gradients + p * m.point_step();
      float* to = sums + p * v.point_step() + c * lanes * lanes;
      for (std::size_t b = 0; b < m.blocks; b += 2) {
        const auto run = b + 1 < m.blocks ? add_blocks<2> : add_blocks<1>;
        run(from, d + b * m.block_step(), count, to + b * v.block_step(), v.block_step());
      }
    }
  }
}

}  // namespace poseidon::cpu::winograd
