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

/// Runs `run(argc, argv)`. Wrong use and bad files (std::invalid_argument, spec_error) give exit code 2, all other
/// exceptions 1; each prints one line on standard error.
template <class Run>
int run_app(int argc, char** argv, Run run) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return exit_code_of(e);
  }
}

}  // namespace poseidon::app
