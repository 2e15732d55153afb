// cpu/kernels/compress.hpp - lists of nonzero terms from vectors, without a branch per value.
#pragma once
#include "cpu/kernels/gather.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace poseidon::cpu {

/// For each set of lanes the permutation that moves them to the front.
inline constexpr auto front_lanes = [] {
  std::array<std::array<std::int32_t, 8>, 256> t{};
  for (std::size_t mask = 0; mask < 256; ++mask) {
    std::size_t next = 0;
    for (std::int32_t lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1u) != 0) t[mask][next++] = lane;
    }
  }
  return t;
}();

/// Appends (offset, scale) of the lanes with scale != 0 in their order; returns how many. Writes
/// eight terms.
inline std::size_t append_nonzero(__m256i offsets, __m256 scales, sparse_term* to) {
  const auto mask = static_cast<unsigned>(
      _mm256_movemask_ps(_mm256_cmp_ps(scales, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
  const __m256i front =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(front_lanes[mask].data()));
  const __m256i o = _mm256_permutevar8x32_epi32(offsets, front);
  const __m256i s = _mm256_permutevar8x32_epi32(_mm256_castps_si256(scales), front);
  const __m256i low = _mm256_unpacklo_epi32(o, s);   // terms 0 1 | 4 5
  const __m256i high = _mm256_unpackhi_epi32(o, s);  // terms 2 3 | 6 7
  auto* out = reinterpret_cast<__m256i*>(to);
  _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(low, high, 0x31));
  return static_cast<std::size_t>(__builtin_popcount(mask));
}

/// The integers beside the scales, compressed alike.
inline void append_beside(__m256i numbers, __m256 scales, std::int32_t* to) {
  const auto mask = static_cast<unsigned>(
      _mm256_movemask_ps(_mm256_cmp_ps(scales, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
  const __m256i front =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(front_lanes[mask].data()));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(numbers, front));
}

/// Rows become columns.
inline void transpose(__m256 (&r)[8]) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

}  // namespace poseidon::cpu
