// cpu/matrix.hpp - products of plain float32 matrices.
#pragma once
#include <cstddef>

namespace poseidon::cpu {

struct matrix {
  const float* values;
  bool transposed;
  std::size_t row_length;  ///< as it lies in memory
};

/// c [rows, columns] = a b, all row-major; `inner` is the length of the sums.
/// Errors   std::runtime_error if oneDNN refuses.
void multiply(std::size_t rows, std::size_t columns, std::size_t inner, const matrix& a,
              const matrix& b, float* c);

/// into [columns] = the sum of the rows of x [rows, columns], first row first.
void sum_rows(std::size_t rows, std::size_t columns, const float* x, float* into);

}  // namespace poseidon::cpu
