// apps/terminal/text.hpp - text for terminals: its width, how it is shortened, and which characters may be sent.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon::app {

enum class style { plain, bar, warning };

struct styled {
  std::string text;
  app::style style = style::plain;
};
using styled_line = std::vector<styled>;

/// Replaces control characters and bytes that are no UTF-8 by "?"; tabs and ends of lines stay. Names from other users'
/// files must not control the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// Replaces bytes that are no UTF-8 by U+FFFD, as readers of JSON expect.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// The number of columns of `text`, which is printable(). CJK characters take two each, combining marks none.
[[nodiscard]] std::size_t columns_of(std::string_view text);
[[nodiscard]] std::size_t columns_of(const styled_line& line);

/// The beginning of `text` that fits into the columns.
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns);
[[nodiscard]] styled_line cut(const styled_line& line, std::size_t columns);

/// If `text` is too wide, its beginning and end with ".." between them: both parts of a path are informative.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

/// The line for the terminal; without SGR sequences unless `colour`.
[[nodiscard]] std::string sent(const styled_line& line, bool colour);

}  // namespace poseidon::app
