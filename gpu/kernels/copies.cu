#include "gpu/kernels/copies.hpp"
#include "gpu/launch.hpp"

namespace poseidon::gpu {

void copy_runs(stream& s, const run_copy& c, const float* from, float* to) {
  const index length = to_index(c.length);
  const std::size_t from_step = c.from_step, to_step = c.to_step;
  for_each(s, c.runs * c.length, [=] POSEIDON_DEVICE(index i) {
    const index run = i / length, k = i % length;
    to[run * to_step + k] = from[run * from_step + k];
  });
}

void turn(stream& s, std::size_t outer, std::size_t rows, std::size_t columns, const float* from,
          float* to) {
  const index row_count = to_index(rows), column_count = to_index(columns),
              size = to_index(rows * columns);
  for_each(s, outer * rows * columns, [=] POSEIDON_DEVICE(index i) {
    const index row = i % row_count, column = i / row_count % column_count;
    to[i] = from[std::size_t{i / size} * size + std::size_t{row} * column_count + column];
  });
}

void repeat(stream& s, std::size_t times, std::size_t n, const float* from, float* to) {
  const index size = to_index(n);
  for_each(s, times * n, [=] POSEIDON_DEVICE(index i) { to[i] = from[i % size]; });
}

void tile(stream& s, std::size_t outer, std::size_t times, std::size_t n, const float* from,
          float* to) {
  const index size = to_index(n), group = to_index(times * n);
  for_each(s, outer * times * n,
           [=] POSEIDON_DEVICE(index i) { to[i] = from[i / group * size + i % size]; });
}

void sum_tiles(stream& s, std::size_t outer, std::size_t times, std::size_t n, const float* from,
               float* to) {
  const index size = to_index(n), tiles = to_index(times);
  for_each(s, outer * n, [=] POSEIDON_DEVICE(index i) {
    const std::size_t first = std::size_t{i / size} * tiles * size + i % size;
    float sum = 0;
    for (index t = 0; t < tiles; ++t) sum += from[first + std::size_t{t} * size];
    to[i] = sum;
  });
}

}  // namespace poseidon::gpu
