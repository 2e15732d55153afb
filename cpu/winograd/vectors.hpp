// cpu/winograd/vectors.hpp
//
// The vectors that the other headers of this folder compute with: they are compiled once for AVX2 (avx2.cpp) and once
// for AVX-512 (avx512.cpp, which defines POSEIDON_AVX512), each in a namespace of its own. Functions that touch vectors
// are marked POSEIDON_WIDE; nothing else may be compiled for AVX-512, since the linker keeps one copy of, say,
// std::vector's functions for all processors.
#pragma once
#include "cpu/bfloat16.hpp"

#include <cstddef>
#include <immintrin.h>

#ifdef POSEIDON_AVX512
#define POSEIDON_VECTORS avx512
#define POSEIDON_WIDE __attribute__((target("avx512f")))
#else
#define POSEIDON_VECTORS avx2
#define POSEIDON_WIDE
#endif
#define POSEIDON_WIDE_INLINE POSEIDON_WIDE __attribute__((always_inline)) inline

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

#ifdef POSEIDON_AVX512

using vector = __m512;
constexpr std::size_t lanes = 16;  ///< channels in a vector, and in a block of a blob
/// The part of a product that registers hold: these rows, and at most these blocks of columns.
constexpr std::size_t rows_at_once = 8, blocks_at_once = 2;
/// See portions_of().
constexpr std::size_t fewest_at_once = 16, most_at_once = 128, most_whole_weights = 1'200'000,
                      most_tile_floats = 3'750'000, rows_of_part = 96, blocks_of_part = 4;

POSEIDON_WIDE_INLINE vector spread(float a) {
  return _mm512_set1_ps(a);
}
POSEIDON_WIDE_INLINE vector load(const float* p) {
  return _mm512_load_ps(p);
}
POSEIDON_WIDE_INLINE vector load_unaligned(const float* p) {
  return _mm512_loadu_ps(p);
}
POSEIDON_WIDE_INLINE void store(float* p, vector x) {
  _mm512_store_ps(p, x);
}
POSEIDON_WIDE_INLINE void store_unaligned(float* p, vector x) {
  _mm512_storeu_ps(p, x);
}
POSEIDON_WIDE_INLINE vector load_unaligned(const bfloat16* p) {
  const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}
/// See store_eight().
POSEIDON_WIDE_INLINE void store_unaligned(bfloat16* p, vector x) {
  __m256i upper;
  asm("vcvtneps2bf16 %1, %0" : "=v"(upper) : "v"(x));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), upper);
}
/// a * b + c, rounded once.
POSEIDON_WIDE_INLINE vector fused(vector a, vector b, vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
/// The first `count` values of a vector, or all of them if `count` is larger; no others are touched.
POSEIDON_WIDE_INLINE vector load_first(const float* p, std::size_t count) {
  return count >= lanes ? _mm512_loadu_ps(p)
                        : _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
}
POSEIDON_WIDE_INLINE void store_first(float* p, std::size_t count, vector x) {
  if (count >= lanes)
    _mm512_storeu_ps(p, x);
  else
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), x);
}
// See transpose().
POSEIDON_WIDE_INLINE vector interleave_low(vector a, vector b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
POSEIDON_WIDE_INLINE vector interleave_high(vector a, vector b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
POSEIDON_WIDE_INLINE vector interleave_low_pairs(vector a, vector b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
POSEIDON_WIDE_INLINE vector interleave_high_pairs(vector a, vector b) {
  return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
POSEIDON_WIDE_INLINE vector even_quarters(vector a, vector b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
POSEIDON_WIDE_INLINE vector odd_quarters(vector a, vector b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}
POSEIDON_WIDE_INLINE void transpose_quarters(const vector (&from)[lanes], vector (&to)[lanes]) {
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    const vector even01 = even_quarters(from[j], from[4 + j]),
                 odd01 = odd_quarters(from[j], from[4 + j]),
                 even23 = even_quarters(from[8 + j], from[12 + j]),
                 odd23 = odd_quarters(from[8 + j], from[12 + j]);
    to[j] = even_quarters(even01, even23);
    to[4 + j] = even_quarters(odd01, odd23);
    to[8 + j] = odd_quarters(even01, even23);
    to[12 + j] = odd_quarters(odd01, odd23);
  }
}
/// Negative values times `slope`.
POSEIDON_WIDE_INLINE vector leaky(vector x, float slope) {
  const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_mul_ps(x, negative, x, _mm512_set1_ps(slope));
}

#else

using vector = __m256;
constexpr std::size_t lanes = 8;
constexpr std::size_t rows_at_once = 4, blocks_at_once = 3;
constexpr std::size_t fewest_at_once = 24, most_at_once = 128, most_whole_weights = 600'000,
                      most_tile_floats = 3'750'000, rows_of_part = 96, blocks_of_part = 3;

POSEIDON_WIDE_INLINE vector spread(float a) {
  return _mm256_set1_ps(a);
}
POSEIDON_WIDE_INLINE vector load(const float* p) {
  return _mm256_load_ps(p);
}
POSEIDON_WIDE_INLINE vector load_unaligned(const float* p) {
  return _mm256_loadu_ps(p);
}
POSEIDON_WIDE_INLINE void store(float* p, vector x) {
  _mm256_store_ps(p, x);
}
POSEIDON_WIDE_INLINE void store_unaligned(float* p, vector x) {
  _mm256_storeu_ps(p, x);
}
POSEIDON_WIDE_INLINE vector fused(vector a, vector b, vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
POSEIDON_WIDE_INLINE __m256i first_mask(std::size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
POSEIDON_WIDE_INLINE vector load_first(const float* p, std::size_t count) {
  return count >= lanes ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_mask(count));
}
POSEIDON_WIDE_INLINE void store_first(float* p, std::size_t count, vector x) {
  if (count >= lanes)
    _mm256_storeu_ps(p, x);
  else
    _mm256_maskstore_ps(p, first_mask(count), x);
}
// See transpose().
POSEIDON_WIDE_INLINE vector interleave_low(vector a, vector b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
POSEIDON_WIDE_INLINE vector interleave_high(vector a, vector b) {
  return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
POSEIDON_WIDE_INLINE vector interleave_low_pairs(vector a, vector b) {
  return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
}
POSEIDON_WIDE_INLINE vector interleave_high_pairs(vector a, vector b) {
  return __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
POSEIDON_WIDE_INLINE void transpose_quarters(const vector (&from)[lanes], vector (&to)[lanes]) {
#pragma GCC unroll 4
  for (std::size_t j = 0; j < 4; ++j) {
    to[j] = __builtin_shufflevector(from[j], from[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
    to[4 + j] = __builtin_shufflevector(from[j], from[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
POSEIDON_WIDE_INLINE vector leaky(vector x, float slope) {
  const vector negative = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
  return _mm256_blendv_ps(x, x * _mm256_set1_ps(slope), negative);
}

#endif

POSEIDON_WIDE_INLINE vector times(float a, vector x) {
  return spread(a) * x;
}
POSEIDON_WIDE_INLINE vector plus(vector sum, float a, vector x) {
  return fused(spread(a), x, sum);
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
