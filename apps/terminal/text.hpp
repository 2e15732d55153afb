// apps/terminal/text.hpp - texts as a terminal shows them: how wide they are, what is cut, what may be sent there.
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

/// Without what a terminal would obey: control characters, and bytes that are no UTF-8, are "?". Tabs and ends of lines
/// stay. Names in the files of others must not move a cursor.
[[nodiscard]] std::string printable(std::string_view text);

/// Bytes that are no UTF-8 are replaced by U+FFFD: what a reader of JSON wants.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// How many columns `text`, which is printable(), takes. CJK takes two each, combining marks none.
[[nodiscard]] std::size_t columns_of(std::string_view text);
[[nodiscard]] std::size_t columns_of(const styled_line& line);

/// The beginning of `text` that fits.
[[nodiscard]] std::string cut(std::string_view text, std::size_t columns);
[[nodiscard]] styled_line cut(const styled_line& line, std::size_t columns);

/// Begin and end with ".." between them where `text` is too wide: of a path both tell something.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

/// The line as it is sent; without SGR sequences unless `colour`.
[[nodiscard]] std::string sent(const styled_line& line, bool colour);

}  // namespace poseidon::app
