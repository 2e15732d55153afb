// apps/terminal/terminal.hpp - what standard output and standard error are, and what may be drawn there.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace poseidon::app {

/// A stream on which lines can be drawn in place.
struct terminal {
  int fd = 1;           ///< 1 or 2
  bool colour = false;  ///< SGR sequences are wanted
};

/// What decides, apart from the descriptors, so that it can be told apart from where it was read.
struct terminal_signs {
  enum class kind { terminal, file, other };  ///< file: also /dev/null; other: a pipe, a socket
  kind out = kind::other, err = kind::other;
  std::optional<std::string> term, no_color, clicolor;
};

/// As this process finds them.
[[nodiscard]] terminal_signs read_signs();

/// Where live lines belong: the terminal of standard output; where that is a file (or has to stay free for events of
/// programs, `out_is_taken`), the terminal of standard error. Nowhere with a pipe, whose reader may write to the same
/// terminal, or if TERM says that nothing can be drawn.
/// Source   NO_COLOR: no-color.org, set and not empty; CLICOLOR=0: bixense.com/clicolors.
[[nodiscard]] std::optional<terminal> live_terminal(const terminal_signs& s, bool out_is_taken);

struct terminal_size {
  std::size_t columns = 80, rows = 24;  ///< where the terminal does not say
};
/// Now: people resize.
[[nodiscard]] terminal_size size_of(const terminal& t);

/// Whether the terminal is this process's to draw on. A job in the background would draw into its owner's prompt.
[[nodiscard]] bool in_foreground(const terminal& t);

}  // namespace poseidon::app
