// cpu/bfloat16.hpp
//
// A value of two bytes between layers: the upper half of a float32. Kernels compute in float32 whatever they read and write.
//
// A float32 is rounded to the nearest bfloat16, of two equally near ones to the even one; what is not a number stays none, and what
// is too small to be normal becomes zero. That is what the instruction VCVTNEPS2BF16 does, which the vector functions use: processors
// without it have no device that gets here (make_cpu_device()). This library is compiled for AVX2, so the compiler does not know it.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace poseidon::cpu {

/// Eight floats in one register.
using eight __attribute__((vector_size(32))) = float;

struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): kernels over both types assign floats.
  bfloat16(float v) {
    const auto u = std::bit_cast<std::uint32_t>(v);
    const bool is_normal = (u & 0x7f800000u) != 0;
    const std::uint32_t rounded = u + 0x7fffu + (u >> 16 & 1u), quiet = u | 0x400000u;
    bits = static_cast<std::uint16_t>((v != v      ? quiet
                                       : is_normal ? rounded
                                                   : u & 0x80000000u) >>
                                      16);
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

/// Eight values, exactly.
[[nodiscard]] inline eight load_eight(const bfloat16* at) {
  const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16));
}
/// Eight values, rounded. Only where multiplies_bf16().
inline void store_eight(bfloat16* to, eight v) {
  __m128i upper;
  asm("vcvtneps2bf16 %1, %0" : "=x"(upper) : "x"(v));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), upper);
}

/// to[i] = from[i], exactly.
inline void widen(const bfloat16* from, std::size_t size, float* to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
}
/// to[i] = from[i], rounded. Only where multiplies_bf16().
inline void narrow(const float* from, std::size_t size, bfloat16* to) {
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) store_eight(to + i, _mm256_loadu_ps(from + i));
  for (; i < size; ++i) to[i] = from[i];
}

}  // namespace poseidon::cpu
