#include "apps/terminal/text.hpp"

#include "models/printable.hpp"

#include <algorithm>
#include <cstdint>
#include <cwchar>
#include <locale.h>

namespace poseidon::app {

namespace {

struct character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool good = false;
};

/// The first character of a text that is not empty.
character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto bytes = utf8_character(text, 0);
  if (bytes == 0) return {};
  if (bytes == 1) return {byte(0), 1, true};
  char32_t code = byte(0) & (0xffu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3fu);
  return {code, bytes, true};
}

bool is_control(char32_t code) {
  if (code == '\n' || code == '\t') return false;
  return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/// wcwidth() depends on the thread's locale; the program's locale stays "C", in which numbers are read and written.
class unicode_locale {
 public:
  unicode_locale() : here_(newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{})) {
    if (here_ != locale_t{}) before_ = uselocale(here_);
  }
  ~unicode_locale() {
    if (here_ == locale_t{}) return;
    uselocale(before_);
    freelocale(here_);
  }
  unicode_locale(const unicode_locale&) = delete;
  unicode_locale& operator=(const unicode_locale&) = delete;

 private:
  locale_t here_, before_{};
};

std::size_t width_of(char32_t code) {
  const int columns = ::wcwidth(static_cast<wchar_t>(code));
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

/// Bytes of the longest beginning that fits into the given columns.
std::size_t bytes_that_fit(std::string_view text, std::size_t columns) {
  if (is_ascii(text)) return std::min(text.size(), columns);
  const unicode_locale here;
  std::size_t used = 0, at = 0;
  while (at < text.size()) {
    const auto c = first_of(text.substr(at));
    const auto width = c.good ? width_of(c.code) : 1;
    if (used + width > columns) break;
    used += width;
    at += c.bytes;
  }
  return at;
}

const char* sgr_of(style s) {
  switch (s) {
    case style::bar:
      return "\033[36m";
    case style::warning:
      return "\033[33m";
    case style::plain:
      break;
  }
  return "";
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto c = first_of(text);
    if (!c.good || is_control(c.code))
      out += '?';
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto c = first_of(text);
    out += c.good ? text.substr(0, c.bytes) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(c.bytes);
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  if (is_ascii(text)) return text.size();
  const unicode_locale here;
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto c = first_of(text);
    columns += c.good ? width_of(c.code) : 1;
    text.remove_prefix(c.bytes);
  }
  return columns;
}

std::size_t columns_of(const styled_line& line) {
  std::size_t columns = 0;
  for (const auto& part : line) columns += columns_of(part.text);
  return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
  return std::string(text.substr(0, bytes_that_fit(text, columns)));
}

styled_line cut(const styled_line& line, std::size_t columns) {
  styled_line out;
  for (const auto& part : line) {
    auto fits = cut(part.text, columns);
    columns -= columns_of(fits);
    const bool whole = fits.size() == part.text.size();
    if (!fits.empty()) out.push_back({std::move(fits), part.style});
    if (!whole) break;
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t columns) {
  const auto wide = columns_of(text);
  if (wide <= columns) return std::string(text);
  if (columns <= 4) return cut(text, columns);
  const auto tail = (columns - 2) / 2;
  auto from = bytes_that_fit(text, wide - tail);
  // A character of two columns may cross the boundary.
  while (columns_of(text.substr(from)) > tail) from += first_of(text.substr(from)).bytes;
  return cut(text, columns - 2 - tail) + ".." + std::string(text.substr(from));
}

std::string sent(const styled_line& line, bool colour) {
  std::string out;
  for (const auto& part : line) {
    const bool dressed = colour && part.style != style::plain && !part.text.empty();
    out += dressed ? sgr_of(part.style) + part.text + "\033[0m" : part.text;
  }
  return out;
}

}  // namespace poseidon::app
