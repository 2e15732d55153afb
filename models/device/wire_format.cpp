#include "models/device/wire_format.hpp"

#include "models/device/block_format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace poseidon {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t infinity = 0x7f800000;
constexpr float largest_half = 65504;
constexpr float beyond_half = 65520;  // the least that is nearer to the number after the largest

/// What becomes of a finite value that a format has not.
enum class beyond { largest, infinite };

template <beyond Beyond>
std::uint16_t half_of(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const auto size = bits & 0x7fffffff;
  const auto with_sign = [sign](std::uint32_t of) { return static_cast<std::uint16_t>(sign | of); };
  if (size > infinity) return with_sign(0x7e00 | (size >> 13 & 0x3ff));
  if (size == infinity) return with_sign(0x7c00);
  if (Beyond == beyond::infinite && size >= std::bit_cast<std::uint32_t>(beyond_half))
    return with_sign(0x7c00);
  if (size >= std::bit_cast<std::uint32_t>(largest_half)) return with_sign(0x7bff);
  const auto exponent = size >> 23;
  if (exponent >= 113) return with_sign((size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13);
  // Below 2^-14: a multiple of 2^-24.
  const auto shift = 126 - exponent;
  if (shift > 24) return sign;
  const auto m = (size & 0x7fffff) | 0x800000;
  return with_sign((m + (1u << (shift - 1)) - 1 + (m >> shift & 1)) >> shift);
}

float of_half(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, m = h & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | infinity | m << 13 | (m != 0 ? 0x400000u : 0u));
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | m << 13);
  const float small = static_cast<float>(m) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(small) | sign);
}

/// The upper half of a float32. Without branches, so that loops over it become vector instructions.
template <beyond Beyond>
std::uint16_t brain_of(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const auto sign = bits & 0x80000000u, size = bits & 0x7fffffffu;
  const auto rounded = (size + 0x7fff + (size >> 16 & 1)) >> 16;
  const auto finite = std::min(rounded, Beyond == beyond::infinite ? 0x7f80u : 0x7f7fu);
  const auto other = size >> 16 | (size > infinity ? 0x40u : 0u);
  return static_cast<std::uint16_t>(sign >> 16 | (size < infinity ? finite : other));
}

float of_brain(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

template <beyond Beyond>
void to_halves(const float* from, std::uint16_t* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = half_of<Beyond>(from[i]);
}
void from_halves(const std::uint16_t* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = of_half(from[i]);
}
template <beyond Beyond>
void to_brains(const float* from, std::uint16_t* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = brain_of<Beyond>(from[i]);
}
void from_brains(const std::uint16_t* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = of_brain(from[i]);
}

#if defined(__x86_64__)
#define POSEIDON_F16C __attribute__((target("avx2,f16c")))

template <beyond Beyond>
POSEIDON_F16C void to_halves_f16c(const float* from, std::uint16_t* to, std::size_t n) {
  const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256 largest = _mm256_set1_ps(largest_half);
  const __m256 endless = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(infinity)));
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(from + i);
    const __m256 size = _mm256_and_ps(v, no_sign);
    const __m256 outside = _mm256_and_ps(_mm256_cmp_ps(size, largest, _CMP_GT_OQ),
                                         _mm256_cmp_ps(size, endless, _CMP_LT_OQ));
    const __m256 bound = _mm256_or_ps(largest, _mm256_andnot_ps(no_sign, v));
    const __m256 in_range = Beyond == beyond::infinite ? v : _mm256_blendv_ps(v, bound, outside);
    const __m128i half = _mm256_cvtps_ph(in_range, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
  }
  to_halves<Beyond>(from + i, to + i, n - i);
}

POSEIDON_F16C void from_halves_f16c(const std::uint16_t* from, float* to, std::size_t n) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  from_halves(from + i, to + i, n - i);
}

bool has_f16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;  // clang's __builtin_cpu_supports does not know f16c
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
  }();
  return has;
}
#endif

struct conversion {
  void (*to)(const float*, std::uint16_t*, std::size_t);
  void (*cast)(const float*, std::uint16_t*, std::size_t);
  void (*from)(const std::uint16_t*, float*, std::size_t);
};

conversion portable_conversion(wire_format f) {
  using enum beyond;
  return f == wire_format::float16
             ? conversion{to_halves<largest>, to_halves<infinite>, from_halves}
             : conversion{to_brains<largest>, to_brains<infinite>, from_brains};
}

conversion conversion_of(wire_format f) {
#if defined(__x86_64__)
  if (f == wire_format::float16 && has_f16c())
    return {to_halves_f16c<beyond::largest>, to_halves_f16c<beyond::infinite>, from_halves_f16c};
#endif
  return portable_conversion(f);
}

void require_sizes(wire_format f, std::size_t bytes, std::size_t values, std::size_t others) {
  if (bytes == wire_bytes(f, values) && others == values) return;
  throw std::invalid_argument(std::to_string(bytes) + " bytes of " + std::string(to_string(f)) +
                              " and arrays of " + std::to_string(values) + " and " +
                              std::to_string(others) + " values do not fit each other");
}

std::uint16_t* words(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint16_t*>(bytes.data());
}
const std::uint16_t* words(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint16_t*>(bytes.data());
}

// The values between two conversions stay in the first-level cache.
constexpr std::size_t piece_values = 4 * block_values;
using piece_of_values = std::array<float, piece_values>;

/// `f`: gets of each piece the place of its first value, the number of its values, and where its bytes are.
template <class F>
void in_pieces(wire_format format, std::size_t n, F&& f) {
  for (std::size_t at = 0; at < n; at += piece_values)
    f(at, std::min(piece_values, n - at), wire_bytes(format, at));
}

void encode_as(void (*to)(const float*, std::uint16_t*, std::size_t), const block_codec& codec,
               wire_format f, std::span<const float> values, std::span<std::byte> bytes) {
  require_sizes(f, bytes.size(), values.size(), values.size());
  if (values.empty()) return;
  if (f == wire_format::float32)
    std::memcpy(bytes.data(), values.data(), bytes.size());
  else if (has_blocks(f))
    codec.encode(f, block_source::first, values.data(), nullptr, values.size(), bytes.data(),
                 nullptr);
  else
    to(values.data(), words(bytes), values.size());
}

void decode_as(const conversion& c, const block_codec& codec, wire_format f,
               std::span<const std::byte> bytes, std::span<float> values) {
  require_sizes(f, bytes.size(), values.size(), values.size());
  if (values.empty()) return;
  if (f == wire_format::float32)
    std::memcpy(values.data(), bytes.data(), bytes.size());
  else if (has_blocks(f))
    codec.decode(f, bytes.data(), values.size(), nullptr, values.data());
  else
    c.from(words(bytes), values.data(), values.size());
}

}  // namespace

void encode(wire_format f, std::span<const float> values, std::span<std::byte> bytes) {
  encode_as(conversion_of(f).to, fastest_block_codec(), f, values, bytes);
}

void encode_cast(wire_format f, std::span<const float> values, std::span<std::byte> bytes) {
  encode_as(conversion_of(f).cast, fastest_block_codec(), f, values, bytes);
}

void decode(wire_format f, std::span<const std::byte> bytes, std::span<float> values) {
  decode_as(conversion_of(f), fastest_block_codec(), f, bytes, values);
}

void portable::encode(wire_format f, std::span<const float> values, std::span<std::byte> bytes) {
  encode_as(portable_conversion(f).to, portable_block_codec(), f, values, bytes);
}

void portable::encode_cast(wire_format f, std::span<const float> values,
                           std::span<std::byte> bytes) {
  encode_as(portable_conversion(f).cast, portable_block_codec(), f, values, bytes);
}

void portable::decode(wire_format f, std::span<const std::byte> bytes, std::span<float> values) {
  decode_as(portable_conversion(f), portable_block_codec(), f, bytes, values);
}

void encode_with_feedback(wire_format f, std::span<const float> values, std::span<float> residual,
                          std::span<std::byte> bytes) {
  require_sizes(f, bytes.size(), values.size(), residual.size());
  if (has_blocks(f))
    return fastest_block_codec().encode(f, block_source::sum, values.data(), residual.data(),
                                        values.size(), bytes.data(), residual.data());
  in_pieces(f, values.size(), [&](std::size_t at, std::size_t n, std::size_t first_byte) {
    piece_of_values wanted, sent;
    const auto to = bytes.subspan(first_byte, wire_bytes(f, n));
    for (std::size_t i = 0; i < n; ++i) wanted[i] = values[at + i] + residual[at + i];
    encode(f, std::span(wanted).first(n), to);
    decode(f, to, std::span(sent).first(n));
    for (std::size_t i = 0; i < n; ++i) {
      const float left = wanted[i] - sent[i];
      residual[at + i] = std::isfinite(left) ? left : 0.0f;
    }
  });
}

void encode_change(wire_format f, std::span<const float> now, std::span<const float> before,
                   std::span<std::byte> bytes) {
  require_sizes(f, bytes.size(), now.size(), before.size());
  if (has_blocks(f))
    return fastest_block_codec().encode(f, block_source::difference, now.data(), before.data(),
                                        now.size(), bytes.data(), nullptr);
  in_pieces(f, now.size(), [&](std::size_t at, std::size_t n, std::size_t first_byte) {
    piece_of_values change;
    for (std::size_t i = 0; i < n; ++i) change[i] = now[at + i] - before[at + i];
    encode(f, std::span(change).first(n), bytes.subspan(first_byte, wire_bytes(f, n)));
  });
}

void add_decoded(wire_format f, std::span<const std::byte> bytes, std::span<const float> before,
                 std::span<float> into) {
  require_sizes(f, bytes.size(), into.size(), before.size());
  if (has_blocks(f))
    return fastest_block_codec().decode(f, bytes.data(), into.size(), before.data(), into.data());
  in_pieces(f, into.size(), [&](std::size_t at, std::size_t n, std::size_t first_byte) {
    piece_of_values change;
    decode(f, bytes.subspan(first_byte, wire_bytes(f, n)), std::span(change).first(n));
    for (std::size_t i = 0; i < n; ++i) into[at + i] = before[at + i] + change[i];
  });
}

}  // namespace poseidon
