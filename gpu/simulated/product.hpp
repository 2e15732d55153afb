// gpu/simulated/product.hpp - the products of matrices behind simulated convolutions and simulated cuBLAS.
#pragma once

#include <cstddef>

namespace poseidon::gpu::simulated {

/// A matrix, or its transpose, by the distance between neighbours: element (r, c) lies at at[r * row + c * column].
struct left_matrix {
  const float* at;
  std::size_t row, column;
};

/// Adds `a` [m, k] times `b` [k, n] to `into` [m, n].
/// Summands come one after the other, as k rises, whatever m and n are: a sum's bits depend on its own summands alone.
/// Shapes   rows of `b` lie `b_row` values apart, those of `into` `into_row`; each one's values lie side by side
/// Writes   into
void add_product(std::size_t m, std::size_t n, std::size_t k, left_matrix a, const float* b,
                 std::size_t b_row, float* into, std::size_t into_row);

}  // namespace poseidon::gpu::simulated
