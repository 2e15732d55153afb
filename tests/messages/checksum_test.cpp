#include "messages/wire/checksum.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

namespace poseidon {
namespace {

std::vector<std::byte> noise(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> v(n);
  for (auto& b : v) b = static_cast<std::byte>(rng());
  return v;
}

TEST_CASE("crc32c: agrees with the values that RFC 3720 B.4 prints") {
  std::vector<std::byte> b(32);
  CHECK(crc32c(b) == 0x8a9136aa);
  std::memset(b.data(), 0xff, b.size());
  CHECK(crc32c(b) == 0x62a8ab43);
  for (unsigned i = 0; i < 32; ++i) b[i] = static_cast<std::byte>(i);
  CHECK(crc32c(b) == 0x46dd794e);
  const std::string_view digits = "123456789";
  CHECK(crc32c(std::as_bytes(std::span(digits))) == 0xe3069283);
}

TEST_CASE(
    "crc32c: three lanes at a time give what one byte after the other gives, at every length") {
  const auto data = noise(40'000, 1);
  for (const std::size_t n : {0,   1,    7,    8,    9,    63,   511,    512,    513,    767,
                              768, 1031, 6143, 6144, 6145, 6152, 12'287, 12'288, 12'291, 39'999}) {
    for (const std::size_t offset : {0, 1, 3}) {
      if (offset + n > data.size()) continue;
      const auto part = std::span(data).subspan(offset, n);
      CAPTURE(n);
      CHECK(crc32c(part) == crc32c_portable(part));
      CHECK(crc32c(part, 0x12345678) == crc32c_portable(part, 0x12345678));
    }
  }
}

TEST_CASE("crc32c: going on from the sum of the first part gives the sum of the whole") {
  const auto data = noise(20'000, 2);
  for (const std::size_t cut : {0, 1, 5, 6144, 10'000, 20'000}) {
    const auto s = std::span(data);
    CHECK(crc32c(s.subspan(cut), crc32c(s.first(cut))) == crc32c(data));
  }
}

TEST_CASE("crc32c: one flipped bit or two swapped words change it") {
  auto data = noise(8192, 3);
  const auto right = crc32c(data);
  for (std::size_t bit = 0; bit < data.size() * 8; bit += 997) {
    data[bit / 8] ^= std::byte{1} << (bit % 8);
    CHECK(crc32c(data) != right);
    data[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (int i = 0; i < 8; ++i) std::swap(data[i], data[2048 + i]);
  CHECK(crc32c(data) != right);
}

}  // namespace
}  // namespace poseidon
