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
#endif

}  // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t c = ~before;
  for (const auto b : bytes)
    c = (c >> 8) ^ byte_table[(c ^ std::to_integer<std::uint32_t>(b)) & 0xff];
  return ~c;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42(bytes.data(), bytes.size(), before);
#endif
  return crc32c_portable(bytes, before);
}

}  // namespace poseidon
