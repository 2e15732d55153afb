#include "cpu/gather.hpp"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <immintrin.h>
#include <utility>

namespace poseidon::cpu {
namespace {

constexpr std::size_t most_registers = 13;  // of 16: one for the scale, two for the compiler
constexpr std::size_t most_wide = 20;       // of 32: what a 5x5 kernel over 32 channels fills twice

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

/// As gather(), with vectors of sixteen; the last one of a row is cut by `last`.
template <int Rows, int Vectors>
__attribute__((target("avx512f"))) void gather_wide(const sparse_term* t, std::size_t count,
                                                    const float* from, std::size_t from_step,
                                                    float* into, std::size_t into_step,
                                                    __mmask16 last) {
  constexpr auto full = static_cast<__mmask16>(0xFFFF);
  __m512 sum[Rows][Vectors];
#pragma GCC unroll 20
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 20
    for (int v = 0; v < Vectors; ++v) {
      sum[r][v] =
          _mm512_maskz_loadu_ps(v + 1 < Vectors ? full : last, into + r * into_step + 16 * v);
    }
  }
  for (const sparse_term* end = t + count; t != end; ++t) {
    const __m512 scale = _mm512_set1_ps(t->scale);
    const float* row = from + t->offset;
#pragma GCC unroll 20
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 20
      for (int v = 0; v + 1 < Vectors; ++v) {
        sum[r][v] =
            _mm512_fmadd_ps(scale, _mm512_loadu_ps(row + r * from_step + 16 * v), sum[r][v]);
      }
      constexpr int end_vector = Vectors - 1;
      const __m512 x = _mm512_maskz_loadu_ps(last, row + r * from_step + 16 * end_vector);
      sum[r][end_vector] = _mm512_fmadd_ps(scale, x, sum[r][end_vector]);
    }
  }
#pragma GCC unroll 20
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 20
    for (int v = 0; v < Vectors; ++v) {
      _mm512_mask_storeu_ps(into + r * into_step + 16 * v, v + 1 < Vectors ? full : last,
                            sum[r][v]);
    }
  }
}

using wide_kernel = void (*)(const sparse_term*, std::size_t, const float*, std::size_t, float*,
                             std::size_t, __mmask16);

template <int Rows, int Vectors>
constexpr wide_kernel wide_or_null() {
  if constexpr (Rows * Vectors <= static_cast<int>(most_wide)) {
    return &gather_wide<Rows, Vectors>;
  } else {
    return nullptr;
  }
}

template <int Vectors, std::size_t... Rows>
constexpr std::array<wide_kernel, most_wide> wide_kernels_of(std::index_sequence<Rows...>) {
  return {wide_or_null<static_cast<int>(Rows) + 1, Vectors>()...};
}

template <std::size_t... Vectors>
constexpr auto all_wide_kernels(std::index_sequence<Vectors...>) {
  return std::array{
      wide_kernels_of<static_cast<int>(Vectors) + 1>(std::make_index_sequence<most_wide>())...};
}

constexpr auto wide_kernels = all_wide_kernels(std::make_index_sequence<most_wide>());

/// How a block of rows is cut into pieces that registers hold: equal ones, 20 vectors into 10 + 10,
/// not 13 + 7.
struct cut {
  std::size_t vectors, width, high;
};
cut cut_rows(const row_block& b, std::size_t lanes, std::size_t registers) {
  cut c{};
  c.vectors = (b.length + lanes - 1) / lanes;
  const std::size_t pieces = (c.vectors + registers - 1) / registers;
  c.width = (c.vectors + pieces - 1) / pieces;
  c.high = std::min(b.rows, registers / c.width);
  return c;
}

}  // namespace

void gather_rows_avx2(const row_block& b, const sparse_term* terms, std::size_t count,
                      const float* from, float* into) {
  const cut c = cut_rows(b, 8, most_registers);
  for (std::size_t first = 0; first < c.vectors; first += c.width) {
    const std::size_t v = std::min(c.width, c.vectors - first);
    for (std::size_t r = 0; r < b.rows; r += c.high) {
      const std::size_t rows = std::min(c.high, b.rows - r);
      kernels[v - 1][rows - 1](terms, count, from + r * b.from_step + 8 * first, b.from_step,
                               into + r * b.into_step + 8 * first, b.into_step);
    }
  }
}

void gather_rows_avx512(const row_block& b, const sparse_term* terms, std::size_t count,
                        const float* from, float* into) {
  if (b.length <= 8) return gather_rows_avx2(b, terms, count, from, into);
  const cut c = cut_rows(b, 16, most_wide);
  for (std::size_t first = 0; first < c.vectors; first += c.width) {
    const std::size_t v = std::min(c.width, c.vectors - first);
    const std::size_t left = b.length - 16 * (first + v - 1);
    const auto last = static_cast<__mmask16>(left >= 16 ? 0xFFFFu : (1u << left) - 1);
    for (std::size_t r = 0; r < b.rows; r += c.high) {
      const std::size_t rows = std::min(c.high, b.rows - r);
      wide_kernels[v - 1][rows - 1](terms, count, from + r * b.from_step + 16 * first, b.from_step,
                                    into + r * b.into_step + 16 * first, b.into_step, last);
    }
  }
}

gather_function choose_gather() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? gather_rows_avx512
                                                                     : gather_rows_avx2;
}

}  // namespace poseidon::cpu
