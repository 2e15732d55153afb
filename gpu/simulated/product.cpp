#include "gpu/simulated/product.hpp"

#include <cstring>

namespace poseidon::gpu::simulated {

namespace {

// Tests train whole nets with these products, so what is added up stays in registers: a block of rows and columns.
using lanes = float __attribute__((vector_size(32)));
constexpr std::size_t width = sizeof(lanes) / sizeof(float), block_rows = 4, block_columns = 2;

lanes load(const float* from) {
  lanes v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// One block of [Rows, Columns * width].
template <std::size_t Rows, std::size_t Columns>
void add_block(std::size_t k, left_matrix a, const float* b, std::size_t b_row, float* into,
               std::size_t into_row) {
  lanes sums[Rows][Columns];
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t c = 0; c < Columns; ++c) sums[r][c] = load(into + r * into_row + c * width);
  for (std::size_t i = 0; i < k; ++i) {
    lanes values[Columns];
    for (std::size_t c = 0; c < Columns; ++c) values[c] = load(b + i * b_row + c * width);
    for (std::size_t r = 0; r < Rows; ++r) {
      const float factor = a.at[r * a.row + i * a.column];
      for (std::size_t c = 0; c < Columns; ++c) sums[r][c] += factor * values[c];
    }
  }
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t c = 0; c < Columns; ++c)
      std::memcpy(into + r * into_row + c * width, &sums[r][c], sizeof(lanes));
}

/// All columns of `Rows` rows.
template <std::size_t Rows>
void add_rows(std::size_t n, std::size_t k, left_matrix a, const float* b, std::size_t b_row,
              float* into, std::size_t into_row) {
  std::size_t c = 0;
  for (; c + block_columns * width <= n; c += block_columns * width)
    add_block<Rows, block_columns>(k, a, b + c, b_row, into + c, into_row);
  for (; c + width <= n; c += width) add_block<Rows, 1>(k, a, b + c, b_row, into + c, into_row);
  if (c == n) return;
  for (std::size_t r = 0; r < Rows; ++r)
    for (std::size_t i = 0; i < k; ++i) {
      const float factor = a.at[r * a.row + i * a.column];
      for (std::size_t at = c; at < n; ++at) into[r * into_row + at] += factor * b[i * b_row + at];
    }
}

}  // namespace

void add_product(std::size_t m, std::size_t n, std::size_t k, left_matrix a, const float* b,
                 std::size_t b_row, float* into, std::size_t into_row) {
  std::size_t r = 0;
  for (; r + block_rows <= m; r += block_rows)
    add_rows<block_rows>(n, k, {a.at + r * a.row, a.row, a.column}, b, b_row, into + r * into_row,
                         into_row);
  for (; r < m; ++r)
    add_rows<1>(n, k, {a.at + r * a.row, a.row, a.column}, b, b_row, into + r * into_row, into_row);
}

}  // namespace poseidon::gpu::simulated
