// gpu/kernels/rows.hpp - kernels over rows of values that belong together: sums, means, the largest.
//
// Shapes   x and blobs like it [rows, size]; outputs are overwritten
#pragma once
#include "gpu/runtime/runtime.hpp"

#include <cstddef>

namespace poseidon::gpu {

enum class row_sum { values, absolute, squares };

/// sums[row] = factor * sum of x, |x| or x^2
void sum_rows(stream& s, row_sum of, std::size_t rows, std::size_t size, float factor,
              const float* x, float* sums);
/// dx = factor * dsums[row] * the derivative of the summand
void sum_rows_backward(stream& s, row_sum of, std::size_t rows, std::size_t size, float factor,
                       const float* x, const float* dsums, float* dx);

/// y = (x - mean of the row) / divisor[row]: the row's deviation plus eps where `divides`, else 1. `means` [rows] and
/// `divisor` [rows] are written.
void standardize_rows(stream& s, std::size_t rows, std::size_t size, bool divides, float eps,
                      const float* x, float* means, float* divisor, float* y);
/// dx = (dy - mean(dy) - y mean(dy y)) / divisor, without the last term unless `divides`. `means` [2, rows] is scratch.
void standardize_rows_backward(stream& s, std::size_t rows, std::size_t size, bool divides,
                               const float* y, const float* divisor, const float* dy, float* means,
                               float* dx);

/// The `top` largest of x [outer, size, inner] along the middle axis; of equal ones the later comes first. Their
/// places, their values, or both (null: not written): [outer, top, inner] where `step` is 1. Row o of the outputs
/// begins at o * step * top * inner.
struct largest_places {
  std::size_t outer = 1, size = 1, inner = 1, top = 1, step = 1;
};
void find_largest(stream& s, const largest_places& p, const float* x, float* places, float* values);

}  // namespace poseidon::gpu
