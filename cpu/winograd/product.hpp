// cpu/winograd/product.hpp - the products of small matrices, one at each point, that Winograd's way comes down to.
#pragma once
#include "cpu/winograd/tiles.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// m = u * v at one point for `Rows` rows and `Blocks` blocks of columns, added to what m held unless `first`. u [rows,
/// depth] lies in blocks of its columns, v [depth, columns] and m [rows, columns] in blocks of theirs.
template <std::size_t Rows, std::size_t Blocks>
POSEIDON_WIDE_INLINE void multiply_rows(const float* u, std::size_t u_step, std::size_t depth,
                                        const float* v, std::size_t v_step, bool first, float* m,
                                        std::size_t m_step) {
  vector sum[Rows][Blocks];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t b = 0; b < Blocks; ++b)
      sum[r][b] = first ? spread(0) : load(m + b * m_step + r * lanes);
  for (std::size_t c = 0; c < depth; c += lanes, u += u_step) {
    const std::size_t here = std::min(lanes, depth - c);
    for (std::size_t k = 0; k < here; ++k, v += lanes) {
      vector w[Blocks];
#pragma GCC unroll 4
      for (std::size_t b = 0; b < Blocks; ++b) w[b] = load(v + b * v_step);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
        const vector x = spread(u[r * lanes + k]);
#pragma GCC unroll 4
        for (std::size_t b = 0; b < Blocks; ++b) sum[r][b] = fused(x, w[b], sum[r][b]);
      }
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (std::size_t b = 0; b < Blocks; ++b) store(m + b * m_step + r * lanes, sum[r][b]);
}

/// That for `rows` rows, rounded up to a multiple of half of rows_at_once.
template <std::size_t Blocks>
POSEIDON_WIDE void multiply_blocks(const float* u, std::size_t u_step, std::size_t depth,
                                   const float* v, std::size_t v_step, bool first, float* m,
                                   std::size_t m_step, std::size_t rows) {
  for (std::size_t t = 0; t < rows;) {
    const float* from = u + t * lanes;
    float* to = m + t * lanes;
    const std::size_t left = rows - t;
    if (left > rows_at_once / 2) {
      multiply_rows<rows_at_once, Blocks>(from, u_step, depth, v, v_step, first, to, m_step);
      t += rows_at_once;
    } else {
      constexpr std::size_t few = rows_at_once / 2;
      multiply_rows<few, Blocks>(from, u_step, depth, v, v_step, first, to, m_step);
      t += few;
    }
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

/// products = inputs * weights for the first `count` tiles and this part of the weights, at every point; added to what the
/// products held unless the part begins with the first row. Up to rows_at_once - 1 tiles more are written with whatever
/// the inputs' memory holds for them.
///
/// Shapes   inputs u   weights v, the part's   products m, the part's blocks of columns
template <class Step>
void multiply(std::size_t count, const weight_part& part, const spectrum& u, const float* inputs,
              const spectrum& v, const float* weights, const spectrum& m, float* products,
              Step& step) {
  for (std::size_t p = 0; p < u.points; ++p) {
    step.next();
    const float* from = inputs + p * u.point_step() + part.row / lanes * u.block_step();
    const float* w = weights + p * v.point_step();
    float* to = products + p * m.point_step();
    each_blocks(part.blocks, [&](std::size_t b, std::size_t blocks) {
      const auto run = blocks == 3   ? multiply_blocks<3>
                       : blocks == 2 ? multiply_blocks<2>
                                     : multiply_blocks<1>;
      run(from, u.block_step(), part.rows, w + b * v.block_step(), v.block_step(), part.row == 0,
          to + b * m.block_step(), m.block_step(), count);
    });
  }
}

/// sums = transpose(inputs) * gradients over the first `count` tiles for this part of the weights, at every point, added
/// to what the sums held unless `first`.
///
/// Shapes   inputs u   gradients m   sums v, the part's
template <class Step>
void add_products(std::size_t count, const weight_part& part, const spectrum& u,
                  const float* inputs, const spectrum& m, const float* gradients, bool first,
                  const spectrum& v, float* sums, Step& step) {
  for (std::size_t p = 0; p < u.points; ++p) {
    step.next();
    const float* d = gradients + p * m.point_step() + part.block * m.block_step();
    const float* from = inputs + p * u.point_step() + part.row / lanes * u.block_step();
    for (std::size_t c = 0; c < part.rows; c += lanes, from += u.block_step()) {
      float* to = sums + p * v.point_step() + c * lanes;
      each_blocks(part.blocks, [&](std::size_t b, std::size_t blocks) {
        const auto run = blocks == 3 ? add_blocks<3> : blocks == 2 ? add_blocks<2> : add_blocks<1>;
        run(from, d + b * m.block_step(), m.block_step(), count, first, to + b * v.block_step(),
            v.block_step());
      });
    }
  }
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
