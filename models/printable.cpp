// Source   UTF-8: RFC 3629, section 4.
#include "models/printable.hpp"

#include <algorithm>
#include <cstdint>

namespace poseidon {

namespace {

constexpr char digits[] = "0123456789abcdef";

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

bool is_control(std::string_view text, std::size_t at) {
  const auto first = byte_at(text, at);
  constexpr std::uint8_t of_c1 = 0xc2;  // U+0080 to U+009F are C2 80 to C2 9F
  return first < 0x20 || first == 0x7f || (first == of_c1 && byte_at(text, at + 1) < 0xa0);
}

}  // namespace

std::size_t utf8_character(std::string_view text, std::size_t at) {
  const auto first = byte_at(text, at);
  if (first < 0x80) return 1;
  const std::size_t bytes = first < 0xc2   ? 0
                            : first < 0xe0 ? 2
                            : first < 0xf0 ? 3
                            : first < 0xf5 ? 4
                                           : 0;
  if (bytes == 0 || bytes > text.size() - at) return 0;
  // The second byte excludes what is too long, surrogates and what lies above U+10FFFF.
  const std::uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const std::uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte_at(text, at + 1) < least || byte_at(text, at + 1) > most) return 0;
  for (std::size_t i = 2; i < bytes; ++i)
    if ((byte_at(text, at + i) & 0xc0) != 0x80) return 0;
  return bytes;
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto bytes = utf8_character(text, at);
    const bool keep =
        bytes > 0 && (kept.find(text[at]) != std::string_view::npos || !is_control(text, at));
    const auto end = at + std::max<std::size_t>(bytes, 1);
    for (; at < end; ++at)
      if (keep)
        out += text[at];
      else
        out += std::string("\\x") + digits[byte_at(text, at) >> 4] + digits[byte_at(text, at) & 15];
  }
  return out;
}

bool is_printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto bytes = utf8_character(text, at);
    if (bytes == 0 || is_control(text, at)) return false;
    at += bytes;
  }
  return true;
}

std::string key_text(std::string_view key) {
  if (is_printable(key)) return std::string(key);
  std::string out = "0x";
  for (std::size_t at = 0; at < key.size(); ++at) {
    out += digits[byte_at(key, at) >> 4];
    out += digits[byte_at(key, at) & 15];
  }
  return out;
}

}  // namespace poseidon
