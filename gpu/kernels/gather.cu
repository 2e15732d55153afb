#include "gpu/kernels/gather.hpp"
#include "gpu/runtime/launch.hpp"

namespace poseidon::gpu {
namespace {

POSEIDON_HOST_DEVICE inline bool is_row(float number, index rows) {
  return number > -1 && number < static_cast<float>(rows);
}

/// Where in the blob value i of the box lies.
POSEIDON_HOST_DEVICE inline std::size_t place_in(const box& b, std::size_t i) {
  std::size_t place = 0;
  for (int a = b.axes; a-- > 0;) {
    place += b.first[a] + i % b.extent[a] * b.step[a];
    i /= b.extent[a];
  }
  return place;
}

}  // namespace

void gather_rows(stream& s, std::size_t rows, std::size_t length, std::size_t taken,
                 const float* number, const float* from, float* to, label_fault* fault) {
  const index size = to_index(length), has = to_index(rows);
  for_each(s, taken * length, [=] POSEIDON_DEVICE(index i) {
    const float n = number[i / size];
    if (!is_row(n, has)) fault->raise(n);
    to[i] = is_row(n, has) ? from[std::size_t{static_cast<index>(n)} * size + i % size] : 0.0f;
  });
}

void add_gathered_rows(stream& s, std::size_t rows, std::size_t length, std::size_t taken,
                       const float* number, const float* from, float* to) {
  const index size = to_index(length), has = to_index(rows), count = to_index(taken);
  for_each(s, rows * length, [=] POSEIDON_DEVICE(index i) {
    const index row = i / size, k = i % size;
    float sum = 0;
    for (index t = 0; t < count; ++t)
      if (is_row(number[t], has) && static_cast<index>(number[t]) == row)
        sum += from[std::size_t{t} * size + k];
    to[i] = sum;
  });
}

void take_box(stream& s, const box& b, std::size_t n, const float* from, float* to) {
  const box copy = b;
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { to[i] = from[place_in(copy, i)]; });
}

void put_box(stream& s, const box& b, std::size_t n, const float* from, float* to) {
  const box copy = b;
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { to[place_in(copy, i)] = from[i]; });
}

}  // namespace poseidon::gpu
