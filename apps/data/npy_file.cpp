#include "apps/data/npy_file.hpp"

#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace poseidon::app {
namespace {
constexpr std::size_t preamble = 10;  // magic, version, two bytes of length
constexpr char magic[] = "\x93NUMPY";

std::string dictionary_of(const shape& extents) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (const auto extent : extents) text += std::to_string(extent) + ", ";
  if (extents.size() > 1) text.resize(text.size() - 2);
  if (extents.size() == 1) text.resize(text.size() - 1);
  return text + "), }";
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& text) {
  throw std::runtime_error(path.string() + ": " + text);
}

/// The text that follows 'key': in the dictionary.
std::string after(const std::string& text, const std::string& key,
                  const std::filesystem::path& path) {
  const auto at = text.find("'" + key + "':");
  if (at == std::string::npos) fail(path, "a .npy file whose header has no \"" + key + "\".");
  const auto begin = text.find_first_not_of(' ', at + key.size() + 3);
  return begin == std::string::npos ? "" : text.substr(begin);
}

/// "<f4" of the header's '<f4'; what numpy.dtype() would take for an array of records, whose types are a list.
std::string kind_in(const std::string& text) {
  if (text.empty()) return "";
  if (text[0] == '\'') return text.substr(1, text.find('\'', 1) - 1);
  int open = 0;
  std::size_t end = 0;
  do {
    if (text[end] == '[') ++open;
    if (text[end] == ']') --open;
  } while (++end < text.size() && open > 0);
  return "records " + text.substr(0, end);
}

std::optional<std::uint64_t> bytes_of(const npy_file& file) {
  std::uint64_t each = 0;
  const auto* end = file.kind.data() + file.kind.size();
  if (file.kind.size() < 3 || std::from_chars(file.kind.data() + 2, end, each).ptr != end)
    return std::nullopt;               // times, records
  if (file.kind[1] == 'U') each *= 4;  // characters
  const auto values = checked_count(file.extents);
  if (!values) return std::nullopt;
  return static_cast<std::uint64_t>(*values) * each;
}
}  // namespace

std::string npy_header(const shape& extents) {
  auto dictionary = dictionary_of(extents);
  constexpr std::size_t multiple = 64;
  const auto all = (preamble + dictionary.size() + 1 + multiple - 1) / multiple * multiple;
  dictionary.append(all - preamble - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header(magic, 6);
  header += '\1';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

bool is_npy(const std::filesystem::path& path) {
  char begin[6] = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin, sizeof begin) && std::string(begin, 6) == magic;
}

npy_file read_npy_header(const std::filesystem::path& path) {
  if (!is_npy(path)) fail(path, "not a .npy file: it does not begin as one.");
  std::ifstream file(path, std::ios::binary);
  std::string text(preamble, '\0');
  file.read(text.data(), preamble);
  const bool wide = text[6] > 1;  // version 2 has four bytes of length
  std::size_t length = static_cast<unsigned char>(text[8]) |
                       static_cast<std::size_t>(static_cast<unsigned char>(text[9])) << 8;
  npy_file result;
  result.header_bytes = preamble + length;
  if (wide) {
    char more[2] = {};
    file.read(more, 2);
    length |= static_cast<std::size_t>(static_cast<unsigned char>(more[0])) << 16 |
              static_cast<std::size_t>(static_cast<unsigned char>(more[1])) << 24;
    result.header_bytes = preamble + 2 + length;
  }
  const auto size = std::filesystem::file_size(path);
  if (!file || result.header_bytes > size)
    fail(path, "a .npy file that is cut short: " + std::to_string(size) +
                   " bytes, its header alone has " + std::to_string(result.header_bytes) + ".");
  text.assign(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  result.kind = kind_in(after(text, "descr", path));
  result.column_major = after(text, "fortran_order", path).rfind("True", 0) == 0;
  const auto extents = after(text, "shape", path);
  const auto close = extents.find(')');
  if (extents.empty() || extents[0] != '(' || close == std::string::npos)
    fail(path, "a .npy file whose shape cannot be read.");
  for (std::size_t at = 1; at < close;) {
    std::int64_t extent = 0;
    const auto number = extents.find_first_of("0123456789", at);
    if (number == std::string::npos || number > close) break;
    const auto [stopped, error] =
        std::from_chars(extents.data() + number, extents.data() + close, extent);
    if (error != std::errc{}) fail(path, "a .npy file whose shape cannot be read.");
    result.extents.push_back(extent);
    at = static_cast<std::size_t>(stopped - extents.data());
  }
  if (const auto bytes = bytes_of(result); bytes && *bytes != size - result.header_bytes)
    fail(path, "a .npy file of " + to_string(result.extents) + " values (" + result.kind +
                   "), which are " + std::to_string(*bytes) + " bytes, and it has " +
                   std::to_string(size - result.header_bytes) + ". Was it copied whole?");
  return result;
}

}  // namespace poseidon::app
