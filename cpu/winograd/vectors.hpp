// cpu/winograd/vectors.hpp
//
// The vectors that the other headers of this folder compute with: they are compiled once for AVX2 (avx2.cpp) and once
// for AVX-512 (avx512.cpp, which defines POSEIDON_AVX512), each in a namespace of its own. Functions that touch vectors
// are marked POSEIDON_WIDE; nothing else may be compiled for AVX-512, since the linker keeps one copy of, say,
// std::vector's functions for all processors.
#pragma once
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
/// See tiles_at_once(). (Processors with AVX-512 have larger second-level caches, and leave layers with many weights to
/// oneDNN.)
constexpr std::size_t fewest_at_once = 16, weights_per_tile_at_once = 40'000,
                      most_floats_at_once = 0;

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
/// a * b + c, rounded once.
POSEIDON_WIDE_INLINE vector fused(vector a, vector b, vector c) {
  return _mm512_fmadd_ps(a, b, c);
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
constexpr std::size_t fewest_at_once = 24, weights_per_tile_at_once = 40'000,
                      most_floats_at_once = 8'000'000;

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
