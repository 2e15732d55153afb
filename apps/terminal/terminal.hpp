// apps/terminal/terminal.hpp - the kinds of standard output and standard error, and where lines may be drawn.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace poseidon::app {

/// A stream on which lines can be drawn in place.
struct terminal {
  int fd = 1;           ///< 1 or 2
  bool colour = false;  ///< whether to write SGR sequences
};

/// The facts that decide, separate from their sources so that tests can set them.
struct terminal_signs {
  enum class kind { terminal, file, other };  ///< file: also /dev/null; other: a pipe, a socket
  kind out = kind::other, err = kind::other;
  std::optional<std::string> term, no_color, clicolor;
};

/// The facts of this process.
[[nodiscard]] terminal_signs read_signs();

/// Where live lines are drawn: on standard output's terminal; if standard output is a file (or must stay free for events
/// for programs, `out_is_taken`), on standard error's terminal. They are not drawn with a pipe, whose reader may write to
/// the same terminal, nor if TERM names a terminal that cannot draw.
/// Source   NO_COLOR: no-color.org, set and not empty; CLICOLOR=0: bixense.com/clicolors.
[[nodiscard]] std::optional<terminal> live_terminal(const terminal_signs& s, bool out_is_taken);

struct terminal_size {
  std::size_t columns = 80, rows = 24;  ///< defaults for a terminal that does not report its size
};
/// The present size; users resize terminals.
[[nodiscard]] terminal_size size_of(const terminal& t);

/// Whether this process may draw on the terminal. A job in the background would draw into its user's prompt.
[[nodiscard]] bool in_foreground(const terminal& t);

}  // namespace poseidon::app
