// gpu/launch.hpp
//
// The only way in which kernels are started. A kernel is a lambda or function object over plain values and pointers
// to device memory, in a .cu file that contains nothing but C++: nvcc compiles it for the device, and g++ the same
// file for gpu/simulated/, where it runs as a loop.
//
//   gpu::for_each(s, n, [=] POSEIDON_DEVICE(gpu::index i) { y[i] = x[i] > 0 ? x[i] : 0; });
//
// nvcc asks of such a lambda that it captures by value, has no captures with an initialiser, and stands in a function
// that is neither private nor protected nor itself a lambda without a name.
//
//   for_each(stream, n, f)                      f(i) for i in [0, n), in any order
//   reduce_rows<T>(stream, rows, columns, start, load, combine, store)
//       store(row, combination of start and load(row, column) over the columns); always in the same order, which is
//       the same under CUDA and simulated: `block_threads` partial results, taken in turns, then a tree.
//   reduce_columns<T>(stream, rows, columns, start, load, combine, store, scratch)
//       store(column, combination of start and load(row, column) over the rows), for values whose columns lie side by
//       side; also always in the same order. `scratch` is device memory for column_parts(rows, columns) * columns of T.
//
// On top of these, for values of either type: gpu/map.hpp.
// Errors   gpu::error: more than 2^32 - 1 indices; what the runtime answers to the launch.
#pragma once
#include "gpu/runtime.hpp"
#include "gpu/values.hpp"
#include "models/annotations.hpp"

#include <cstdint>

namespace poseidon::gpu {

/// Of a value in a blob. 32 bits because a GPU divides those several times faster; no blob has more values.
using index = std::uint32_t;

/// Threads of a block, and partial results of a reduction.
inline constexpr index block_threads = 256;

/// Checks a number of values. Errors   gpu::error (misused) beyond 32 bits.
[[nodiscard]] inline index to_index(std::size_t n) {
  if (n > UINT32_MAX)
    throw error(error_kind::misused, 0,
                std::to_string(n) + " values are more than a kernel can count (2^32 - 1)");
  return static_cast<index>(n);
}

/// Columns that a block of reduce_columns() reads side by side, up to 32; its other threads take turns with their rows.
[[nodiscard]] inline index block_columns(std::size_t columns) {
  index wide = 32;
  while (wide > 1 && wide / 2 >= columns) wide /= 2;
  return wide;
}

/// Into how many parts reduce_columns() cuts the rows, so that there are some blocks for every multiprocessor.
[[nodiscard]] inline std::size_t column_parts(std::size_t rows, std::size_t columns) {
  constexpr std::size_t blocks = 1024;
  const std::size_t across = block_columns(columns), least_rows = 8 * (block_threads / across);
  const std::size_t wide = (columns + across - 1) / across;
  const std::size_t most = (rows + least_rows - 1) / least_rows;
  const std::size_t parts = wide == 0 || wide > blocks ? 1 : blocks / wide;
  return parts < most ? parts : most == 0 ? 1 : most;
}

}  // namespace poseidon::gpu

#if defined(__CUDACC__)
#include "gpu/cuda/launch.cuh"
#else
#include "gpu/simulated/launch.hpp"
#endif
