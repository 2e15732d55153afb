#include "models/first_bytes.hpp"

#include <cctype>
#include <fstream>

namespace poseidon {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

std::string digits_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  std::string digits;
  if (at == std::string_view::npos) return digits;
  for (auto i = at + word.size();
       i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i)
    digits += text[i];
  return digits;
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  return begins(text, byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

/// A pipe cannot be read a second time from its beginning, so at most what was read last is given back.
void skip_byte_order_mark(std::istream& in) {
  std::size_t same = 0;
  while (same < byte_order_mark.size() &&
         in.peek() == static_cast<unsigned char>(byte_order_mark[same])) {
    in.get();
    ++same;
  }
  in.clear();  // of a text that ends here
  if (same < byte_order_mark.size())
    for (; same > 0; --same) in.unget();
}

bool is_utf16(std::string_view text) {
  return begins(text, "\xff\xfe") || begins(text, "\xfe\xff");
}

std::string lfs_pointer(std::string_view begin) {
  if (!begins(begin, "version https://git-lfs.github.com/spec/")) return "";
  const auto bytes = digits_after(begin, "\nsize ");
  return "a pointer of Git LFS in place of the file" +
         (bytes.empty() ? "" : ", which has " + bytes + " bytes") +
         " and was not fetched. Run git lfs pull in its repository, or download the file itself";
}

std::string lfs_pointer_at(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return "";
  std::string begin(200, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  return lfs_pointer(begin);
}

}  // namespace poseidon
