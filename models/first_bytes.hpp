// models/first_bytes.hpp - what the first bytes of any file say before the reader of its kind begins.
#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>

namespace poseidon {

/// The text behind UTF-8's byte order mark, which editors on Windows write.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);
/// At the beginning of a text file that is read by lines.
void skip_byte_order_mark(std::istream& in);

/// By its byte order mark.
[[nodiscard]] bool is_utf16(std::string_view text);

/// "a pointer of Git LFS in place of the file, ..." for the text that Git leaves where `git lfs` has not fetched a file; empty
/// for all other files. It needs the first 200 bytes.
[[nodiscard]] std::string lfs_pointer(std::string_view begin);
[[nodiscard]] std::string lfs_pointer_at(const std::filesystem::path& path);

}  // namespace poseidon
