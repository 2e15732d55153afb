// apps/run_app.hpp - how every program ends after an exception: one line and an exit code.
#pragma once
#include "models/printable.hpp"
#include "models/words.hpp"

#include <cstdio>
#include <exception>
#include <execinfo.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace poseidon::app {

/// 2 for wrong use and bad files, 1 for everything else.
[[nodiscard]] inline int exit_code_of(const std::exception& e) {
  return dynamic_cast<const std::invalid_argument*>(&e) != nullptr ? 2 : 1;
}

/// For standard error. Names of files and in files must not control a terminal; a pipe gets them as they are.
[[nodiscard]] inline std::string to_terminal(const std::string& text) {
  return ::isatty(STDERR_FILENO) == 1 ? escaped(text, "\n\t") : text;
}

/// Says `error` in words if there is memory for them.
[[noreturn]] inline void end_with(const char* error) noexcept {
  try {
    std::fprintf(stderr, "error: %s\n", in_words(error).c_str());
  } catch (...) {
    std::fprintf(stderr, "error: %s\n", error);
  }
  _exit(1);
}

/// For an exception that nobody can handle, say one in a thread that has just begun: mostly memory is missing there.
[[noreturn]] inline void end_at_once() {
  const char* words = "an error came while another one was handled; probably memory is missing";
  if (const auto thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      end_with(e.what());
    } catch (...) {
      words = "an exception of an unknown kind";
    }
  }
  std::fprintf(stderr, "error: %s\n", words);
  _exit(1);
}

/// Whether standard output is a pipe whose reader has seen enough, as `head` has: no error of this program.
inline bool reader_has_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// Errors   std::invalid_argument: something that was said on standard output has not arrived there.
inline void require_output() {
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!arrived && !reader_has_gone())
    throw std::invalid_argument(
        "standard output: cannot write to it, so what was printed there is incomplete. Is its disk "
        "full?");
}

/// When an exception passes through a C function of glibc (pthread_once in oneDNN), glibc loads libgcc_s for itself, and
/// aborts where there is no memory for that. A backtrace makes it load it now.
inline void load_unwinder() {
  void* frame = nullptr;
  (void)backtrace(&frame, 1);
}

/// Runs `run(argc, argv)`. Output that cannot be written, wrong use and bad files (std::invalid_argument, spec_error) give exit code 2, all other
/// exceptions 1; each prints one line on standard error.
template <class Run>
int run_app(int argc, char** argv, Run run) {
  std::set_terminate(end_at_once);
  load_unwinder();
  try {
    const int code = run(argc, argv);
    if (code == 0) require_output();
    return code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", to_terminal(in_words(e.what())).c_str());
    return exit_code_of(e);
  }
}

}  // namespace poseidon::app
