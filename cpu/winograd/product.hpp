// cpu/winograd/product.hpp - the products of small matrices, one at each point, that Winograd's way comes down to.
#pragma once
#include "cpu/winograd/tiles.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// m = u * v at one point, for `Blocks` blocks of columns. u [rows, depth] lies in blocks of its columns,
/// v [depth, columns] and m [rows, columns] in blocks of theirs; blocks of u and of m are `step` floats.
template <std::size_t Blocks>
POSEIDON_WIDE void multiply_blocks(const float* u, std::size_t depth, const float* v,
                                   std::size_t v_step, float* m, std::size_t step,
                                   std::size_t rows) {
  for (std::size_t t = 0; t < rows; t += rows_at_once) {
    vector sum[rows_at_once][Blocks];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = spread(0);
    const float* row = v;
    for (std::size_t c = 0; c < depth; c += lanes) {
      const float* a = u + c / lanes * step + t * lanes;
      const std::size_t here = std::min(lanes, depth - c);
      for (std::size_t k = 0; k < here; ++k, row += lanes) {
        vector w[Blocks];
#pragma GCC unroll 4
        for (std::size_t b = 0; b < Blocks; ++b) w[b] = load(row + b * v_step);
#pragma GCC unroll 8
        for (std::size_t r = 0; r < rows_at_once; ++r) {
          const vector x = spread(a[r * lanes + k]);
#pragma GCC unroll 4
          for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = fused(x, w[b], sum[r][b]);
        }
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) store(m + b * step + (t + r) * lanes, sum[r][b]);
  }
}

/// s = transpose(u) * v at one point, added to what s held unless `first`; for one block of u's columns and `Blocks`
/// blocks of v's, over `tiles` rows.
template <std::size_t Blocks>
POSEIDON_WIDE void add_blocks(const float* u, const float* v, std::size_t step, std::size_t tiles,
                              bool first, float* s, std::size_t s_step) {
  for (std::size_t c = 0; c < lanes; c += rows_at_once) {
    vector sum[rows_at_once][Blocks];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b)
        sum[r][b] = first ? spread(0) : load(s + (c + r) * lanes + b * s_step);
    for (std::size_t t = 0; t < tiles; ++t) {
      vector w[Blocks];
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) w[b] = load(v + b * step + t * lanes);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < rows_at_once; ++r) {
        const vector x = spread(u[t * lanes + c + r]);
#pragma GCC unroll 4
        for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = fused(x, w[b], sum[r][b]);
      }
    }
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows_at_once; ++r)
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) store(s + (c + r) * lanes + b * s_step, sum[r][b]);
  }
}

/// Calls f(first block, how many) for all of them; a last block on its own is avoided.
template <class F>
void each_blocks(std::size_t blocks, F f) {
  for (std::size_t b = 0; b < blocks;) {
    const std::size_t left = blocks - b;
    const std::size_t here = std::min(left == blocks_at_once + 1 ? left / 2 : left, blocks_at_once);
    f(b, here);
    b += here;
  }
}

/// products = inputs * weights for the first `count` tiles, at every point; up to rows_at_once - 1 tiles more are
/// written with whatever the inputs' memory holds for them.
///
/// Shapes   inputs u   weights v   products m
inline void multiply(std::size_t count, std::size_t depth, const spectrum& u, const float* inputs,
                     const spectrum& v, const float* weights, const spectrum& m, float* products,
                     const prefetcher& ahead) {
  const std::size_t rows = (count + rows_at_once - 1) / rows_at_once * rows_at_once;
  for (std::size_t p = 0; p < u.points; ++p) {
    ahead.part(p, u.points);
    const float* from = inputs + p * u.point_step();
    const float* w = weights + p * v.point_step();
    float* to = products + p * m.point_step();
    each_blocks(m.blocks, [&](std::size_t b, std::size_t blocks) {
      const auto run = blocks == 3   ? multiply_blocks<3>
                       : blocks == 2 ? multiply_blocks<2>
                                     : multiply_blocks<1>;
      run(from, depth, w + b * v.block_step(), v.block_step(), to + b * m.block_step(),
          m.block_step(), rows);
    });
  }
}

/// sums = transpose(inputs) * gradients over the first `count` tiles, at every point, added to what the sums held
/// unless `first`.
///
/// Shapes   inputs u   gradients m   sums v
inline void add_products(std::size_t count, const spectrum& u, const float* inputs,
                         const spectrum& m, const float* gradients, bool first, const spectrum& v,
                         float* sums, const prefetcher& ahead) {
  for (std::size_t p = 0; p < u.points; ++p) {
    ahead.part(p, u.points);
    const float* d = gradients + p * m.point_step();
    for (std::size_t c = 0; c < u.blocks; ++c) {
      const float* from = inputs + p * u.point_step() + c * u.block_step();
      float* to = sums + p * v.point_step() + c * lanes * lanes;
      each_blocks(m.blocks, [&](std::size_t b, std::size_t blocks) {
        const auto run = blocks == 3 ? add_blocks<3> : blocks == 2 ? add_blocks<2> : add_blocks<1>;
        run(from, d + b * m.block_step(), m.block_step(), count, first, to + b * v.block_step(),
            v.block_step());
      });
    }
  }
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
