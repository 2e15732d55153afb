// gpu/runtime/launch_simulated.hpp - gpu/runtime/launch.hpp for g++: kernels are loops in the stream's thread. Only
// launch.hpp includes it.
#pragma once
#include "gpu/runtime/launch.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace poseidon::gpu {

namespace simulated {
/// Runs `work` in the stream's thread, in order. Counts as a launch for control.hpp.
void enqueue_kernel(stream& s, std::function<void()> work);
}  // namespace simulated

template <class F>
void for_each(stream& s, std::size_t n, F f) {
  if (n == 0) return;
  const index count = to_index(n);
  simulated::enqueue_kernel(s, [count, f] {
    for (index i = 0; i < count; ++i) f(i);
  });
}

template <class T, class Load, class Combine, class Store>
void reduce_rows(stream& s, std::size_t rows, std::size_t columns, T start, Load load,
                 Combine combine, Store store) {
  if (rows == 0) return;
  const index row_count = to_index(rows), column_count = to_index(columns);
  simulated::enqueue_kernel(s, [=] {
    std::array<T, block_threads> partial;
    for (index row = 0; row < row_count; ++row) {
      partial.fill(start);
      for (index c = 0; c < column_count; ++c)
        partial[c % block_threads] = combine(partial[c % block_threads], load(row, c));
      for (index half = block_threads / 2; half > 0; half /= 2)
        for (index t = 0; t < half; ++t) partial[t] = combine(partial[t], partial[t + half]);
      store(row, partial[0]);
    }
  });
}

template <class T, class Load, class Combine>
void reduce_parts(stream& s, const column_cut& p, T start, Load load, Combine combine, T* results) {
  simulated::enqueue_kernel(s, [=] {
    std::array<T, block_threads> partial;
    const index lanes = p.lanes();
    for (index part = 0; part < p.parts; ++part) {
      const index first = part * p.part_rows, end = std::min(p.rows, first + p.part_rows);
      for (index column = 0; column < p.columns; ++column) {
        std::fill_n(partial.begin(), lanes, start);
        const auto of_row = load.of(column);
        for (index r = first; r < end; ++r) {
          T& mine = partial[(r - first) % lanes];
          mine = combine(mine, of_row(r));
        }
        for (index half = lanes / 2; half > 0; half /= 2)
          for (index t = 0; t < half; ++t) partial[t] = combine(partial[t], partial[t + half]);
        results[std::size_t{part} * p.columns + column] = partial[0];
      }
    }
  });
}

}  // namespace poseidon::gpu
