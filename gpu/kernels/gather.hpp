// gpu/kernels/gather.hpp - kernels that select values: rows by their number, or a box in a blob.
#pragma once
#include "gpu/kernels/labels.hpp"
#include "gpu/runtime/runtime.hpp"

#include <cstddef>

namespace poseidon::gpu {

/// to[i] = from[number[i]], rows of `length` values. A number that is no row raises a fault and gives zeros.
void gather_rows(stream& s, std::size_t rows, std::size_t length, std::size_t taken,
                 const float* number, const float* from, float* to, label_fault* fault);
/// The gradient: to[row] = sum of from[i] with number[i] == row, in the order of i.
void add_gathered_rows(stream& s, std::size_t rows, std::size_t length, std::size_t taken,
                       const float* number, const float* from, float* to);

/// A box of a larger blob.
struct box {
  static constexpr int most_axes = 8;
  int axes = 0;
  std::size_t extent[most_axes] = {};  ///< the box's
  std::size_t first[most_axes] = {};   ///< its first value in the blob, in values: offset * step
  std::size_t step[most_axes] = {};    ///< the blob's
};
/// `n` values of the box, in its order.
void take_box(stream& s, const box& b, std::size_t n, const float* from, float* to);
void put_box(stream& s, const box& b, std::size_t n, const float* from, float* to);

}  // namespace poseidon::gpu
