#include "models/fingerprint.hpp"

#include <array>
#include <cstdint>
#include <cstdio>

namespace poseidon {

namespace {

constexpr char between = '\t', end_of_line = '\n';

bool is_printable(char c) {
  return static_cast<unsigned char>(c) >= ' ' && c != 0x7f;
}

std::string printable_part(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (!is_printable(c)) c = '?';
  return out;
}

/// FNV-1a, for a text that nobody reads.
std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return sum;
}

std::string_view take(std::string_view& text, char until) {
  const auto end = text.find(until);
  const auto part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

}  // namespace

std::string encode(const fingerprint& of) {
  std::string text;
  for (const auto& t : of)
    text += printable_part(t.name) + between + printable_part(t.value) + between +
            printable_part(t.shown) + end_of_line;
  if (text.size() <= max_fingerprint_bytes) return text;
  std::array<char, 17> sum{};
  std::snprintf(sum.data(), sum.size(), "%016llx", static_cast<unsigned long long>(sum_of(text)));
  return encode({{"fingerprint", sum.data()}});
}

fingerprint decode_fingerprint(std::string_view text) {
  fingerprint out;
  while (!text.empty()) {
    auto line = take(text, end_of_line);
    const auto name = take(line, between), value = take(line, between);
    out.push_back({printable_part(name), printable_part(value), printable_part(line)});
  }
  return out;
}

}  // namespace poseidon
