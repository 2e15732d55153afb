// models/printable.hpp - bytes of files, names and keys as text that a terminal and JSON can take.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace poseidon {

/// Bytes of the character in UTF-8 that begins at `at`; 0: none does.
[[nodiscard]] std::size_t utf8_character(std::string_view text, std::size_t at);

/// Whether it is UTF-8 without control characters, which could move a terminal's cursor or change its colours.
[[nodiscard]] bool is_printable(std::string_view text);

/// Control characters, except those of `kept`, and bytes that are no UTF-8 become \x1b.
[[nodiscard]] std::string escaped(std::string_view text, std::string_view kept = "");

/// The key of a record: as it is, or where it is not printable 0x and its bytes in hexadecimal.
[[nodiscard]] std::string key_text(std::string_view key);

}  // namespace poseidon
