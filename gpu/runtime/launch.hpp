// gpu/runtime/launch.hpp
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
//       store(row, combination of start and load(row, column) over the columns); always in one order,
//       the same under CUDA and simulated: `block_threads` partial results, taken in turns, then a tree.
//   reduce_columns<T>(stream, rows, columns, start, load, combine, store, scratch)
//       store(column, combination of start and load.of(column)(row) over the rows), for values whose columns lie side by
//       side; also always in the same order. `scratch` is device memory for column_parts(rows, columns) * columns of T.
//
// On top of these, for values of either type: gpu/runtime/map.hpp.
// Errors   gpu::error: more than 2^32 - 1 indices; errors of the runtime.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "gpu/runtime/values.hpp"
#include "models/annotations.hpp"

#include <algorithm>
#include <cstdint>

namespace poseidon::gpu {

/// The index of a value in a blob. 32 bits because a GPU divides those several times faster; no blob has more values.
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

/// The parts of reduce_columns()'s work: blocks of `across` columns by parts of the rows.
struct column_cut {
  index rows = 0, columns = 0;
  index across = 1;  ///< a power of 2: a block's other threads take turns with the rows
  index parts = 1, part_rows = 0;

  [[nodiscard]] POSEIDON_HOST_DEVICE index lanes() const { return block_threads / across; }
};

/// Enough parts for some blocks on every multiprocessor, and few enough for all of them to run at the same time.
[[nodiscard]] inline column_cut cut_columns(std::size_t rows, std::size_t columns) {
  constexpr std::size_t blocks = 512;
  column_cut p{to_index(rows), to_index(columns)};
  while (p.across < 32 && p.across < columns) p.across *= 2;
  const std::size_t wide = (columns + p.across - 1) / p.across, least_rows = 8 * p.lanes();
  const std::size_t most = std::max<std::size_t>(1, (rows + least_rows - 1) / least_rows);
  p.parts =
      to_index(std::min(most, std::max<std::size_t>(1, blocks / std::max<std::size_t>(1, wide))));
  p.part_rows = to_index((rows + p.parts - 1) / p.parts);
  return p;
}

/// The number of results that reduce_columns() combines for each column.
[[nodiscard]] inline std::size_t column_parts(std::size_t rows, std::size_t columns) {
  return cut_columns(rows, columns).parts;
}

}  // namespace poseidon::gpu

#if defined(__CUDACC__)
#include "gpu/runtime/launch_cuda.cuh"
#else
#include "gpu/runtime/launch_simulated.hpp"
#endif

namespace poseidon::gpu {

/// For reduce_columns(): one column's result in one part.
template <class T>
struct part_of_column {
  const T* parts;
  index columns;
  POSEIDON_DEVICE T operator()(index column, index part) const {
    return parts[std::size_t{part} * columns + column];
  }
};

template <class T, class Load, class Combine, class Store>
void reduce_columns(stream& s, std::size_t rows, std::size_t columns, T start, Load load,
                    Combine combine, Store store, std::byte* scratch) {
  if (columns == 0) return;
  const column_cut p = cut_columns(rows, columns);
  T* const results = reinterpret_cast<T*>(scratch);
  reduce_parts(s, p, start, load, combine, results);
  reduce_rows<T>(s, columns, p.parts, start, part_of_column<T>{results, p.columns}, combine, store);
}

}  // namespace poseidon::gpu
