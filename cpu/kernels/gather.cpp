#include "cpu/kernels/gather.hpp"

#include <dnnl.hpp>

#include <algorithm>
#include <array>
#include <immintrin.h>
#include <utility>

namespace poseidon::cpu {

struct gather_kernels {
  // There are 16: one holds the scale, two are the compiler's.
  static constexpr std::size_t narrow_registers = 13;
  // There are 32. A 5x5 kernel over 32 channels fills these 20 twice.
  static constexpr std::size_t wide_registers = 20;

  template <int Rows, int Vectors>
  static void narrow(const sparse_term* t, std::size_t count, const float* from, float* into,
                     const gatherer::row_steps& steps) {
    const std::size_t from_step = steps.from;
    const std::size_t into_step = steps.into;
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
          sum[r][v] =
              _mm256_fmadd_ps(scale, _mm256_loadu_ps(row + r * from_step + 8 * v), sum[r][v]);
        }
      }
    }
#pragma GCC unroll 13
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 13
      for (int v = 0; v < Vectors; ++v) _mm256_storeu_ps(into + r * into_step + 8 * v, sum[r][v]);
    }
  }

  /// As narrow(), with vectors of sixteen; the last one of a row is cut.
  template <int Rows, int Vectors>
  __attribute__((target("avx512f"))) static void wide(const sparse_term* t, std::size_t count,
                                                      const float* from, float* into,
                                                      const gatherer::row_steps& steps) {
    const std::size_t from_step = steps.from;
    const std::size_t into_step = steps.into;
    const __mmask16 last = steps.last;
    constexpr int end_vector = Vectors - 1;
    __m512 sum[Rows][Vectors];
#pragma GCC unroll 20
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 20
      for (int v = 0; v < end_vector; ++v)
        sum[r][v] = _mm512_loadu_ps(into + r * into_step + 16 * v);
      sum[r][end_vector] = _mm512_maskz_loadu_ps(last, into + r * into_step + 16 * end_vector);
    }
    for (const sparse_term* end = t + count; t != end; ++t) {
      const __m512 scale = _mm512_set1_ps(t->scale);
      const float* row = from + t->offset;
#pragma GCC unroll 20
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 20
        for (int v = 0; v < end_vector; ++v) {
          sum[r][v] =
              _mm512_fmadd_ps(scale, _mm512_loadu_ps(row + r * from_step + 16 * v), sum[r][v]);
        }
        const __m512 x = _mm512_maskz_loadu_ps(last, row + r * from_step + 16 * end_vector);
        sum[r][end_vector] = _mm512_fmadd_ps(scale, x, sum[r][end_vector]);
      }
    }
#pragma GCC unroll 20
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 20
      for (int v = 0; v < end_vector; ++v)
        _mm512_storeu_ps(into + r * into_step + 16 * v, sum[r][v]);
      _mm512_mask_storeu_ps(into + r * into_step + 16 * end_vector, last, sum[r][end_vector]);
    }
  }

  using function = decltype(gatherer::piece::run);

  template <bool Wide, int Rows, int Vectors>
  static constexpr function one() {
    if constexpr (Rows * Vectors > static_cast<int>(Wide ? wide_registers : narrow_registers)) {
      return nullptr;
    } else if constexpr (Wide) {
      return &wide<Rows, Vectors>;
    } else {
      return &narrow<Rows, Vectors>;
    }
  }
  template <bool Wide, int Vectors, std::size_t... Rows>
  static constexpr std::array<function, sizeof...(Rows)> of_width(std::index_sequence<Rows...>) {
    return {one<Wide, static_cast<int>(Rows) + 1, Vectors>()...};
  }
  /// By vectors - 1, then rows - 1.
  template <bool Wide, std::size_t... Vectors>
  static constexpr auto all(std::index_sequence<Vectors...> s) {
    return std::array{of_width<Wide, static_cast<int>(Vectors) + 1>(s)...};
  }

  static function choose(bool is_wide, std::size_t rows, std::size_t vectors) {
    static constexpr auto narrow_ones = all<false>(std::make_index_sequence<narrow_registers>());
    static constexpr auto wide_ones = all<true>(std::make_index_sequence<wide_registers>());
    return is_wide ? wide_ones[vectors - 1][rows - 1] : narrow_ones[vectors - 1][rows - 1];
  }
};

gatherer::gatherer(const row_block& b, bool wide) {
  const bool is_wide = wide && b.length > 8;
  const std::size_t lanes = is_wide ? 16 : 8;
  const std::size_t registers =
      is_wide ? gather_kernels::wide_registers : gather_kernels::narrow_registers;
  const std::size_t vectors = (b.length + lanes - 1) / lanes;
  // Equal pieces: 30 vectors are worked as 15 + 15, not 20 + 10.
  const std::size_t parts = (vectors + registers - 1) / registers;
  const std::size_t width = (vectors + parts - 1) / parts;
  const std::size_t high = std::min(b.rows, registers / width);
  for (std::size_t first = 0; first < vectors; first += width) {
    const std::size_t v = std::min(width, vectors - first);
    const std::size_t left = b.length - std::min(b.length, lanes * (first + v - 1));
    const auto last = static_cast<std::uint16_t>(left >= 16 ? 0xFFFFu : (1u << left) - 1);
    for (std::size_t r = 0; r < b.rows; r += high) {
      const std::size_t rows = std::min(high, b.rows - r);
      pieces_.push_back({gather_kernels::choose(is_wide, rows, v),
                         r * b.from_step + lanes * first,
                         r * b.into_step + lanes * first,
                         {b.from_step, b.into_step, last}});
    }
  }
}

bool has_wide_vectors() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
}

}  // namespace poseidon::cpu
