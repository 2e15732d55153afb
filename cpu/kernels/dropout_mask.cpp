#include "cpu/kernels/dropout_mask.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <cmath>
#include <immintrin.h>

namespace poseidon::cpu {
namespace {

struct product {
  __m256i low, high;
};

/// Eight 32 x 32 -> 64 bit products, split in halves.
product multiply(__m256i a, std::uint32_t constant) {
  const __m256i m = _mm256_set1_epi32(static_cast<int>(constant));
  const __m256i even = _mm256_mul_epu32(a, m);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), m);
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA),
          _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA)};
}

/// models/random.hpp's philox() for eight counters; word w of counter j ends in c[w] lane j.
void philox_rounds(__m256i (&c)[4], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const product p0 = multiply(c[0], 0xD2511F53);
    const product p1 = multiply(c[2], 0xCD9E8D57);
    const __m256i k0 = _mm256_set1_epi32(static_cast<int>(key0));
    const __m256i k1 = _mm256_set1_epi32(static_cast<int>(key1));
    c[0] = _mm256_xor_si256(_mm256_xor_si256(p1.high, c[1]), k0);
    c[2] = _mm256_xor_si256(_mm256_xor_si256(p0.high, c[3]), k1);
    c[1] = p1.low;
    c[3] = p0.low;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

/// From four words of eight counters to 32 words in the order of the values.
void interleave(const __m256i (&c)[4], __m256i (&out)[4]) {
  const __m256i a = _mm256_unpacklo_epi32(c[0], c[1]);
  const __m256i b = _mm256_unpacklo_epi32(c[2], c[3]);
  const __m256i d = _mm256_unpackhi_epi32(c[0], c[1]);
  const __m256i e = _mm256_unpackhi_epi32(c[2], c[3]);
  const __m256i r0 = _mm256_unpacklo_epi64(a, b);  // counters 0 and 4
  const __m256i r1 = _mm256_unpackhi_epi64(a, b);  // 1 and 5
  const __m256i r2 = _mm256_unpacklo_epi64(d, e);  // 2 and 6
  const __m256i r3 = _mm256_unpackhi_epi64(d, e);  // 3 and 7
  out[0] = _mm256_permute2x128_si256(r0, r1, 0x20);
  out[1] = _mm256_permute2x128_si256(r2, r3, 0x20);
  out[2] = _mm256_permute2x128_si256(r0, r1, 0x31);
  out[3] = _mm256_permute2x128_si256(r2, r3, 0x31);
}

}  // namespace

void dropout_factors(std::uint64_t seed, std::uint32_t layer, std::uint64_t sample, float ratio,
                     std::size_t size, float* factors) {
  // unit_float(w) >= ratio, in integers: w >> 8 >= ratio * 2^24.
  const auto least = static_cast<std::int32_t>(std::ceil(static_cast<double>(ratio) * 16777216.0));
  const __m256i below = _mm256_set1_epi32(least - 1);
  const __m256 keep = _mm256_set1_ps(1.0f / (1.0f - ratio));
  const auto key0 = static_cast<std::uint32_t>(seed) ^
                    (static_cast<std::uint32_t>(random_use::dropout) * 0x9E3779B9u);
  const auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (std::size_t i = 0; i < size; i += 32) {
    const __m256i first = _mm256_set1_epi32(static_cast<int>(i / 4));
    __m256i c[4] = {_mm256_add_epi32(first, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
                    _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(sample))),
                    _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(sample >> 32))),
                    _mm256_set1_epi32(static_cast<int>(layer))};
    philox_rounds(c, key0, key1);
    __m256i words[4];
    interleave(c, words);
    float group[32];
    for (int v = 0; v < 4; ++v) {
      const __m256i kept = _mm256_cmpgt_epi32(_mm256_srli_epi32(words[v], 8), below);
      _mm256_storeu_ps(group + 8 * v, _mm256_and_ps(keep, _mm256_castsi256_ps(kept)));
    }
    std::copy_n(group, std::min<std::size_t>(32, size - i), factors + i);
  }
}

}  // namespace poseidon::cpu
