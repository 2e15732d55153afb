// apps/run_app.hpp - how every program ends after an exception: one line and an exit code.
#pragma once
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace poseidon::app {

/// 2 for wrong use and bad files, 1 for everything else.
[[nodiscard]] inline int exit_code_of(const std::exception& e) {
  return dynamic_cast<const std::invalid_argument*>(&e) != nullptr ? 2 : 1;
}

/// Errors   std::invalid_argument: something that was said on standard output has not arrived there.
inline void require_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::invalid_argument(
        "standard output: cannot write to it, so what was printed there is incomplete. Is its disk "
        "full?");
}

/// Runs `run(argc, argv)`. Output that cannot be written, wrong use and bad files (std::invalid_argument, spec_error) give exit code 2, all other
/// exceptions 1; each prints one line on standard error.
template <class Run>
int run_app(int argc, char** argv, Run run) {
  try {
    const int code = run(argc, argv);
    if (code == 0) require_output();
    return code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return exit_code_of(e);
  }
}

}  // namespace poseidon::app
