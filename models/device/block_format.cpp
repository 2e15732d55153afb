#include "models/device/block_format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace poseidon {

namespace {

constexpr std::uint32_t not_finite = 0x7f800000;  // magnitudes from here on
constexpr std::uint16_t step_of_nan = 0x7fc0;

/// The largest integer of a format.
template <wire_format F>
constexpr int top = F == wire_format::int8 ? 127 : 7;

/// `magnitude`: the bits of a block's largest.
template <wire_format F>
std::uint16_t step_for(std::uint32_t magnitude) {
  constexpr auto bound =
      std::bit_cast<std::uint32_t>(std::numeric_limits<float>::max() / top<F>) >> 16;
  if (magnitude >= not_finite) return step_of_nan;
  const float step = std::bit_cast<float>(magnitude) / top<F>;
  if (step < std::numeric_limits<float>::min()) return 0;
  return static_cast<std::uint16_t>(
      std::min((std::bit_cast<std::uint32_t>(step) + 0xffff) >> 16, bound));
}

float step_at(const std::byte* from) {
  std::uint16_t step = 0;
  std::memcpy(&step, from, sizeof step);
  return std::bit_cast<float>(static_cast<std::uint32_t>(step) << 16);
}

// -- the portable way -----------------------------------------------------------------------------------

/// Writes what is to be encoded to `wanted`, and returns the bits of its largest magnitude.
template <block_source Of>
std::uint32_t collect(const float* a, const float* b, std::size_t n, float* wanted) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    wanted[i] = Of == block_source::first ? a[i]
                : Of == block_source::sum ? a[i] + b[i]
                                          : a[i] - b[i];
    largest = std::max(largest, std::bit_cast<std::uint32_t>(wanted[i]) & 0x7fffffffu);
  }
  return largest;
}

/// To the nearest, ties to even: the sum with 1.5 * 2^23 has no room for a fraction. A quotient of float32 is a tie only where the exact one is.
template <wire_format F>
std::int32_t integer_of(float wanted, float step) {
  constexpr float room = 0x1.8p23f;
  const float q =
      std::min(std::max(wanted / step, static_cast<float>(-top<F>)), static_cast<float>(top<F>));
  return std::bit_cast<std::int32_t>(q + room) - std::bit_cast<std::int32_t>(room);
}

/// The integers of n values to `to`; the rounding errors to `left`. The step is neither 0 nor NaN.
template <wire_format F>
void quantize(const float* wanted, float step, std::size_t n, std::byte* to, float* left) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto q = integer_of<F>(wanted[i], step);
    if (left != nullptr) left[i] = wanted[i] - static_cast<float>(q) * step;
    if (F == wire_format::int8)
      to[i] = static_cast<std::byte>(q);
    else if (i % 2 == 0)
      to[i / 2] = static_cast<std::byte>(q & 15);
    else
      to[i / 2] |= static_cast<std::byte>(q << 4);
  }
}

template <wire_format F>
std::int32_t integer_at(const std::byte* from, std::size_t i) {
  if (F == wire_format::int8) return static_cast<std::int8_t>(from[i]);
  const auto half = std::to_integer<std::int32_t>(from[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 15;
  return (half ^ 8) - 8;
}

template <wire_format F>
void expand(const std::byte* from, float step, std::size_t n, const float* before, float* into) {
  for (std::size_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(integer_at<F>(from, i)) * step;
    into[i] = before == nullptr ? v : before[i] + v;
  }
}

// -- with AVX2 ------------------------------------------------------------------------------------------

#if defined(__x86_64__)
#define POSEIDON_AVX2 __attribute__((target("avx2")))

constexpr std::size_t at_once = 32;  // values of one step of the loops below

template <block_source Of>
POSEIDON_AVX2 std::uint32_t collect_avx2(const float* a, const float* b, std::size_t n,
                                         float* wanted) {
  const __m256i no_sign = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 v = _mm256_loadu_ps(a + i);
    if (Of == block_source::sum) v = _mm256_add_ps(v, _mm256_loadu_ps(b + i));
    if (Of == block_source::difference) v = _mm256_sub_ps(v, _mm256_loadu_ps(b + i));
    _mm256_storeu_ps(wanted + i, v);
    largest = _mm256_max_epi32(largest, _mm256_and_si256(_mm256_castps_si256(v), no_sign));
  }
  std::array<std::uint32_t, 8> lanes;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes.data()), largest);
  const auto rest = b == nullptr ? b : b + i;
  return std::max(*std::max_element(lanes.begin(), lanes.end()),
                  collect<Of>(a + i, rest, n - i, wanted + i));
}

template <wire_format F>
POSEIDON_AVX2 __m256i integers_avx2(const float* wanted, __m256 step, float* left) {
  const __m256 most = _mm256_set1_ps(top<F>), least = _mm256_set1_ps(-top<F>);
  const __m256 v = _mm256_loadu_ps(wanted);
  const __m256 q = _mm256_min_ps(_mm256_max_ps(_mm256_div_ps(v, step), least), most);
  const __m256i whole = _mm256_cvtps_epi32(q);  // to the nearest, ties to even
  if (left != nullptr)
    _mm256_storeu_ps(left, _mm256_sub_ps(v, _mm256_mul_ps(_mm256_cvtepi32_ps(whole), step)));
  return whole;
}

template <wire_format F>
POSEIDON_AVX2 void quantize_avx2(const float* wanted, float step, std::size_t n, std::byte* to,
                                 float* left) {
  const __m256 steps = _mm256_set1_ps(step);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // after packing by lanes
  const auto part = [left](std::size_t i) { return left == nullptr ? left : left + i; };
  std::size_t i = 0;
  for (; i + at_once <= n; i += at_once) {
    const __m256i a = integers_avx2<F>(wanted + i, steps, part(i));
    const __m256i b = integers_avx2<F>(wanted + i + 8, steps, part(i + 8));
    const __m256i c = integers_avx2<F>(wanted + i + 16, steps, part(i + 16));
    const __m256i d = integers_avx2<F>(wanted + i + 24, steps, part(i + 24));
    const __m256i words = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    const __m256i bytes = _mm256_permutevar8x32_epi32(words, in_order);
    if (F == wire_format::int8) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bytes);
      continue;
    }
    // Of each pair: the first + 16 times the second.
    const __m256i halves = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
    const __m256i pairs = _mm256_maddubs_epi16(halves, _mm256_set1_epi16(0x1001));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, pairs), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i / 2), _mm256_castsi256_si128(packed));
  }
  quantize<F>(wanted + i, step, n - i, to + (F == wire_format::int8 ? i : i / 2), part(i));
}

/// Eight values, of the lower eight bytes.
POSEIDON_AVX2 void expand_eight(__m128i bytes, __m256 step, const float* before, float* into) {
  __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), step);
  if (before != nullptr) v = _mm256_add_ps(_mm256_loadu_ps(before), v);
  _mm256_storeu_ps(into, v);
}

template <wire_format F>
POSEIDON_AVX2 void expand_avx2(const std::byte* from, float step, std::size_t n,
                               const float* before, float* into) {
  const __m256 steps = _mm256_set1_ps(step);
  const __m128i low = _mm_set1_epi8(15), sign = _mm_set1_epi8(8);
  const auto part = [before](std::size_t i) { return before == nullptr ? before : before + i; };
  const auto sixteen = [&](__m128i bytes, std::size_t i) POSEIDON_AVX2 {
    expand_eight(bytes, steps, part(i), into + i);
    expand_eight(_mm_srli_si128(bytes, 8), steps, part(i + 8), into + i + 8);
  };
  std::size_t i = 0;
  for (; i + at_once <= n; i += at_once) {
    if (F == wire_format::int8) {
      const auto* at = reinterpret_cast<const __m128i*>(from + i);
      sixteen(_mm_loadu_si128(at), i);
      sixteen(_mm_loadu_si128(at + 1), i + 16);
      continue;
    }
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i / 2));
    const auto signed_of = [&](__m128i half) POSEIDON_AVX2 {
      return _mm_sub_epi8(_mm_xor_si128(half, sign), sign);
    };
    const __m128i first = signed_of(_mm_and_si128(bytes, low));
    const __m128i second = signed_of(_mm_and_si128(_mm_srli_epi16(bytes, 4), low));
    sixteen(_mm_unpacklo_epi8(first, second), i);
    sixteen(_mm_unpackhi_epi8(first, second), i + 16);
  }
  expand<F>(from + (F == wire_format::int8 ? i : i / 2), step, n - i, part(i), into + i);
}
#endif

// -- block by block -------------------------------------------------------------------------------------

using collector = std::uint32_t (*)(const float*, const float*, std::size_t, float*);
using quantizer = void (*)(const float*, float, std::size_t, std::byte*, float*);
using expander = void (*)(const std::byte*, float, std::size_t, const float*, float*);

/// One block.
template <wire_format F>
void encode_block(collector collects, quantizer quantizes, const float* a, const float* b,
                  std::size_t n, std::byte* to, float* left) {
  std::array<float, block_values> wanted;
  const auto word = step_for<F>(collects(a, b, n, wanted.data()));
  std::memcpy(to, &word, sizeof word);
  const float step = step_at(to);
  if (step > 0) return quantizes(wanted.data(), step, n, to + sizeof word, left);
  std::memset(to + sizeof word, 0, wire_bytes(F, n) - sizeof word);
  if (left == nullptr) return;
  // Too small for a step: all of it is left. Not finite: nothing is.
  if (word == 0)
    std::copy_n(wanted.data(), n, left);
  else
    std::fill_n(left, n, 0.0f);
}

template <wire_format F>
void encode_blocks(collector collects, quantizer quantizes, const float* a, const float* b,
                   std::size_t n, std::byte* to, float* left) {
  for (std::size_t at = 0; at < n; at += block_values) {
    const auto some = std::min(block_values, n - at);
    encode_block<F>(collects, quantizes, a + at, b == nullptr ? b : b + at, some, to,
                    left == nullptr ? left : left + at);
    to += wire_bytes(F, some);
  }
}

template <wire_format F>
void decode_blocks(expander expands, const std::byte* from, std::size_t n, const float* before,
                   float* into) {
  for (std::size_t at = 0; at < n; at += block_values) {
    const auto some = std::min(block_values, n - at);
    expands(from + sizeof(std::uint16_t), step_at(from), some,
            before == nullptr ? before : before + at, into + at);
    from += wire_bytes(F, some);
  }
}

struct way {
  std::array<collector, 3> collects;   // by block_source
  std::array<quantizer, 2> quantizes;  // int8, int4
  std::array<expander, 2> expands;
};

constexpr way portable_way{
    {collect<block_source::first>, collect<block_source::sum>, collect<block_source::difference>},
    {quantize<wire_format::int8>, quantize<wire_format::int4>},
    {expand<wire_format::int8>, expand<wire_format::int4>}};
#if defined(__x86_64__)
constexpr way avx2_way{{collect_avx2<block_source::first>, collect_avx2<block_source::sum>,
                        collect_avx2<block_source::difference>},
                       {quantize_avx2<wire_format::int8>, quantize_avx2<wire_format::int4>},
                       {expand_avx2<wire_format::int8>, expand_avx2<wire_format::int4>}};
#endif

template <const way& By>
void encode_by(wire_format f, block_source of, const float* a, const float* b, std::size_t n,
               std::byte* to, float* left) {
  const auto collects = By.collects.at(static_cast<std::size_t>(of));
  if (f == wire_format::int8)
    encode_blocks<wire_format::int8>(collects, By.quantizes[0], a, b, n, to, left);
  else
    encode_blocks<wire_format::int4>(collects, By.quantizes[1], a, b, n, to, left);
}

template <const way& By>
void decode_by(wire_format f, const std::byte* from, std::size_t n, const float* before,
               float* into) {
  if (f == wire_format::int8)
    decode_blocks<wire_format::int8>(By.expands[0], from, n, before, into);
  else
    decode_blocks<wire_format::int4>(By.expands[1], from, n, before, into);
}

}  // namespace

block_codec portable_block_codec() {
  return {encode_by<portable_way>, decode_by<portable_way>};
}

block_codec fastest_block_codec() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return {encode_by<avx2_way>, decode_by<avx2_way>};
#endif
  return portable_block_codec();
}

}  // namespace poseidon
