#include "apps/terminal/terminal.hpp"

#include <cstdlib>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace poseidon::app {

namespace {

terminal_signs::kind kind_of(int fd) {
  using kind = terminal_signs::kind;
  if (::isatty(fd) == 1) return kind::terminal;
  struct stat about {};
  if (::fstat(fd, &about) != 0) return kind::other;
  return S_ISREG(about.st_mode) || S_ISCHR(about.st_mode) ? kind::file : kind::other;
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

terminal_signs read_signs() {
  return {kind_of(STDOUT_FILENO), kind_of(STDERR_FILENO), variable("TERM"), variable("NO_COLOR"),
          variable("CLICOLOR")};
}

std::optional<terminal> live_terminal(const terminal_signs& s, bool out_is_taken) {
  using kind = terminal_signs::kind;
  if (!s.term || s.term->empty() || *s.term == "dumb") return std::nullopt;
  terminal t;
  t.colour = (!s.no_color || s.no_color->empty()) && s.clicolor != "0";
  if (s.out == kind::terminal && !out_is_taken) return t;
  t.fd = STDERR_FILENO;
  if (s.out == kind::file && s.err == kind::terminal) return t;
  return std::nullopt;
}

terminal_size size_of(const terminal& t) {
  terminal_size size;
  winsize now{};
  if (::ioctl(t.fd, TIOCGWINSZ, &now) != 0) return size;
  if (now.ws_col > 0) size.columns = now.ws_col;
  if (now.ws_row > 0) size.rows = now.ws_row;
  return size;
}

bool in_foreground(const terminal& t) {
  const auto group = ::tcgetpgrp(t.fd);
  return group < 0 || group == ::getpgrp();  // < 0: a terminal that controls no jobs
}

}  // namespace poseidon::app
