#include "messages/wire/checksum.hpp"

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace poseidon {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // Castagnoli's, bits reversed

constexpr std::array<std::uint32_t, 256> byte_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? polynomial : 0);
    table[i] = c;
  }
  return table;
}();

#if defined(__x86_64__)
// The crc of "x followed by n zero bytes" is linear in the crc of x: a 32x32 matrix over GF(2).
// With the matrix for one lane's length, the crcs of lanes that were computed side by side become
// that of the whole.
constexpr std::size_t lane_bytes = 2048;
using matrix = std::array<std::uint32_t, 32>;  // column i: what bit i turns into

constexpr std::uint32_t times(const matrix& m, std::uint32_t v) {
  std::uint32_t sum = 0;
  for (int i = 0; v != 0; ++i, v >>= 1) {
    if ((v & 1) != 0) sum ^= m[i];
  }
  return sum;
}

// over_lane[k][b]: what byte k of a crc, being b, contributes after lane_bytes zero bytes.
constexpr auto over_lane = [] {
  matrix shift{};
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t c = 1u << i;
    shift[i] = (c >> 8) ^ byte_table[c & 0xff];
  }
  for (std::size_t n = 1; n < lane_bytes; n *= 2) {
    matrix squared{};
    for (int i = 0; i < 32; ++i) squared[i] = times(shift, shift[i]);
    shift = squared;
  }
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  for (std::uint32_t k = 0; k < 4; ++k) {
    for (std::uint32_t b = 0; b < 256; ++b) table[k][b] = times(shift, b << (8 * k));
  }
  return table;
}();

std::uint32_t skip_lane(std::uint32_t c) {
  return over_lane[0][c & 0xff] ^ over_lane[1][(c >> 8) & 0xff] ^ over_lane[2][(c >> 16) & 0xff] ^
         over_lane[3][c >> 24];
}

std::uint64_t word_at(const std::byte* p) {
  std::uint64_t w = 0;
  std::memcpy(&w, p, sizeof w);
  return w;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(const std::byte* p, std::size_t n,
                                                             std::uint32_t before) {
  std::uint64_t c = ~before;
  // The instruction takes three cycles, and one can start in each: three lanes keep it busy.
  for (; n >= 3 * lane_bytes; p += 3 * lane_bytes, n -= 3 * lane_bytes) {
    std::uint64_t c1 = 0;
    std::uint64_t c2 = 0;
    for (std::size_t i = 0; i < lane_bytes; i += 8) {
      c = _mm_crc32_u64(c, word_at(p + i));
      c1 = _mm_crc32_u64(c1, word_at(p + lane_bytes + i));
      c2 = _mm_crc32_u64(c2, word_at(p + 2 * lane_bytes + i));
    }
    c = skip_lane(skip_lane(static_cast<std::uint32_t>(c)) ^ static_cast<std::uint32_t>(c1)) ^ c2;
  }
  for (; n >= 8; p += 8, n -= 8) c = _mm_crc32_u64(c, word_at(p));
  auto last = static_cast<std::uint32_t>(c);
  for (; n > 0; ++p, --n) last = _mm_crc32_u8(last, std::to_integer<std::uint8_t>(*p));
  return ~last;
}

// Folding: a block of the message may be replaced by its product with x^distance mod P, added to
// the block that lies that distance ahead, without changing the remainder. Four registers of 512
// bits march through the buffer like that; what is left of them is an ordinary message for the crc
// instruction. Source   Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ", Intel 2009.
constexpr std::size_t fold_bytes = 256;

// x^n mod P with its bits reversed, one to the left, as a carry-less product of reversed operands
// needs it.
constexpr long long power(int n) {
  std::uint32_t r = 0x80000000u;
  for (int i = 0; i < n; ++i) r = (r >> 1) ^ ((r & 1) != 0 ? polynomial : 0);
  return static_cast<long long>(r) << 1;
}

__attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2"))) std::uint32_t crc32c_avx512(
    const std::byte* p, std::size_t n, std::uint32_t before) {
  if (n < 2 * fold_bytes) return crc32c_sse42(p, n, before);
  constexpr auto low = power(8 * fold_bytes + 32);
  constexpr auto high = power(8 * fold_bytes - 32);
  const __m512i k = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  __m512i x[4];
  for (int i = 0; i < 4; ++i) x[i] = _mm512_loadu_si512(p + 64 * i);
  x[0] = _mm512_xor_si512(x[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, ~before));
  for (p += fold_bytes, n -= fold_bytes; n >= fold_bytes; p += fold_bytes, n -= fold_bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x[i], k, 0x00),
                                       _mm512_clmulepi64_epi128(x[i], k, 0x11),
                                       _mm512_loadu_si512(p + 64 * i), 0x96);
    }
  }
  alignas(64) std::byte folded[fold_bytes];
  for (int i = 0; i < 4; ++i) _mm512_store_si512(folded + 64 * i, x[i]);
  constexpr std::uint32_t from_zero = 0xffffffff;  // crc32c_sse42 inverts what it begins with
  return crc32c_sse42(p, n, crc32c_sse42(folded, fold_bytes, from_zero));
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t c = ~before;
  for (const auto b : bytes)
    c = (c >> 8) ^ byte_table[(c ^ std::to_integer<std::uint32_t>(b)) & 0xff];
  return ~c;
}

std::uint32_t crc32c_interleaved(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42(bytes.data(), bytes.size(), before);
#endif
  return crc32c_portable(bytes, before);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
    return crc32c_avx512(bytes.data(), bytes.size(), before);
#endif
  return crc32c_interleaved(bytes, before);
}

}  // namespace poseidon
