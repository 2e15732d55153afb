// apps/run_app.hpp - what every program's main() does with an exception: one line, and an exit code.
#pragma once
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace poseidon::app {

/// Wrong use and bad files 2, whatever else 1.
[[nodiscard]] inline int exit_code_of(const std::exception& e) {
  return dynamic_cast<const std::invalid_argument*>(&e) != nullptr ? 2 : 1;
}

/// Runs `run(argc, argv)`. Wrong use and bad files (std::invalid_argument, spec_error) end with 2,
/// whatever else with 1, each after one line on standard error.
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
