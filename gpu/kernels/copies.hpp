// gpu/kernels/copies.hpp - kernels that copy or repeat values, and change nothing but their type.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/runtime/values.hpp"

#include <cstddef>

namespace poseidon::gpu {

/// to = from, n values; both are of one type.
void copy_values(stream& s, std::size_t n, const_values from, values to);

/// Runs of values that lie a step apart in one blob and another in the other.
struct run_copy {
  std::size_t runs = 0, length = 0;  ///< values in a run
  std::size_t from_step = 0, to_step = 0;
};
/// Concat and Slice. Both are of one type.
void copy_runs(stream& s, const run_copy& c, const_values from, values to);

/// to [outer, columns, rows] = from [outer, rows, columns], in the type of `to`
void turn(stream& s, std::size_t outer, std::size_t rows, std::size_t columns, const_values from,
          values to);

/// to [times, n] = the n values, repeated.
void repeat(stream& s, std::size_t times, std::size_t n, const float* from, float* to);
/// Runs [outer, n] become [outer, times, n].
void tile(stream& s, std::size_t outer, std::size_t times, std::size_t n, const float* from,
          float* to);
/// The gradient of tile(): to [outer, n] = sum of from [outer, times, n].
void sum_tiles(stream& s, std::size_t outer, std::size_t times, std::size_t n, const float* from,
               float* to);

}  // namespace poseidon::gpu
