#include "apps/library/words.hpp"

#include "apps/terminal/text.hpp"

#include <algorithm>
#include <cctype>

namespace poseidon::library {

namespace {

constexpr std::string_view dashes = "--", of_node = "poseidon-node ";

/// "FILE", "127.0.0.1:7600", "/etc/token": what stands behind an option and is its value. Other words go on with the sentence.
bool begins_value(std::string_view rest) {
  if (rest.size() < 2 || rest.front() != ' ') return false;
  const auto c = static_cast<unsigned char>(rest[1]);
  return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '/' || c == '[' || c == '"';
}

/// The longest of `options` with which `text` begins as a whole word; empty: with none.
std::string_view option_at(std::string_view text, const std::vector<std::string>& options) {
  std::string_view found;
  for (const auto& name : options) {
    if (!text.starts_with(name) || name.size() < found.size()) continue;
    const auto next = text.size() == name.size() ? ' ' : text[name.size()];
    if (next != '-' && std::isalnum(static_cast<unsigned char>(next)) == 0) found = name;
  }
  return found;
}

}  // namespace

std::string one_line(std::string_view text) {
  auto out = app::printable(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

std::string in_program_words(std::string_view text, const std::vector<std::string>& options) {
  std::string out;
  while (!text.empty()) {
    const auto at = text.find(dashes);
    out += text.substr(0, at);
    if (at == text.npos) break;
    text.remove_prefix(at);
    const auto name = option_at(text.substr(dashes.size()), options);
    if (name.empty() || out.ends_with(of_node)) {
      out += dashes;
      text.remove_prefix(dashes.size());
      continue;
    }
    out += name;
    out += '=';
    text.remove_prefix(dashes.size() + name.size());
    if (text.starts_with('=') || begins_value(text)) text.remove_prefix(1);
  }
  return one_line(out);
}

std::size_t first_unfit(std::string_view name) {
  const auto shown = one_line(name);
  // What is fit stays as it is, so both are the same up to there.
  const auto [at, other] = std::mismatch(name.begin(), name.end(), shown.begin(), shown.end());
  return at == name.end() ? name.npos : static_cast<std::size_t>(at - name.begin());
}

}  // namespace poseidon::library
