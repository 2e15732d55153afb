#include "cpu/gather.hpp"

#include <algorithm>
#include <array>
#include <immintrin.h>
#include <utility>

namespace poseidon::cpu {
namespace {

constexpr std::size_t most_registers = 13;  // of 16: one for the scale, two for the compiler

template <int Rows, int Vectors>
void gather(const sparse_term* t, std::size_t count, const float* from, std::size_t from_step,
            float* into, std::size_t into_step) {
  __m256 sum[Rows][Vectors];
#pragma GCC unroll 13
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 13
    for (int v = 0; v < Vectors; ++v) sum[r][v] = _mm256_loadu_ps(into + r * into_step + 8 * v);
  }
  for (const sparse_term* end = t + count; t != end; ++t) {
    const __m256 scale = _mm256_set1_ps(t->scale);
    const float* row = from + t->offset;
#pragma GCC unroll 13
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 13
      for (int v = 0; v < Vectors; ++v) {
        sum[r][v] = _mm256_fmadd_ps(scale, _mm256_loadu_ps(row + r * from_step + 8 * v), sum[r][v]);
      }
    }
  }
#pragma GCC unroll 13
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 13
    for (int v = 0; v < Vectors; ++v) _mm256_storeu_ps(into + r * into_step + 8 * v, sum[r][v]);
  }
}

using gather_kernel = void (*)(const sparse_term*, std::size_t, const float*, std::size_t, float*,
                               std::size_t);

template <int Rows, int Vectors>
constexpr gather_kernel kernel_or_null() {
  if constexpr (Rows * Vectors <= static_cast<int>(most_registers)) {
    return &gather<Rows, Vectors>;
  } else {
    return nullptr;
  }
}

template <int Vectors, std::size_t... Rows>
constexpr std::array<gather_kernel, most_registers> kernels_of(std::index_sequence<Rows...>) {
  return {kernel_or_null<static_cast<int>(Rows) + 1, Vectors>()...};
}

template <std::size_t... Vectors>
constexpr auto all_kernels(std::index_sequence<Vectors...>) {
  return std::array{
      kernels_of<static_cast<int>(Vectors) + 1>(std::make_index_sequence<most_registers>())...};
}

constexpr auto kernels = all_kernels(std::make_index_sequence<most_registers>());

}  // namespace

void gather_rows(const row_block& b, const sparse_term* terms, std::size_t count, const float* from,
                 float* into) {
  const std::size_t vectors = (b.length + 7) / 8;
  // Equal pieces: 20 vectors are worked as 10 + 10, not 13 + 7.
  const std::size_t pieces = (vectors + most_registers - 1) / most_registers;
  const std::size_t width = (vectors + pieces - 1) / pieces;
  const std::size_t high = std::min(b.rows, most_registers / width);
  for (std::size_t first = 0; first < vectors; first += width) {
    const std::size_t v = std::min(width, vectors - first);
    for (std::size_t r = 0; r < b.rows; r += high) {
      const std::size_t rows = std::min(high, b.rows - r);
      kernels[v - 1][rows - 1](terms, count, from + r * b.from_step + 8 * first, b.from_step,
                               into + r * b.into_step + 8 * first, b.into_step);
    }
  }
}

}  // namespace poseidon::cpu
