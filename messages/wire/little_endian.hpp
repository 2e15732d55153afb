// messages/wire/little_endian.hpp - numbers and texts in blocks of a fixed layout, which no parser reads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace poseidon {

template <class Int>
void put(std::span<std::byte> to, Int v) {
  for (std::size_t i = 0; i < sizeof v; ++i) to[i] = static_cast<std::byte>(v >> (8 * i));
}
template <class Int>
[[nodiscard]] Int get(std::span<const std::byte> from) {
  Int v = 0;
  for (std::size_t i = 0; i < sizeof v; ++i)
    v |= static_cast<Int>(std::to_integer<std::uint8_t>(from[i])) << (8 * i);
  return v;
}

/// A peer's text as it may be shown to a user: printable ASCII only, up to the first zero.
[[nodiscard]] inline std::string printable(std::span<const std::byte> bytes) {
  std::string s;
  for (const auto b : bytes) {
    const auto c = std::to_integer<char>(b);
    if (c == 0) break;
    s += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return s;
}

}  // namespace poseidon
