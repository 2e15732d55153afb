// apps/run_app.hpp - what every program's main() does with an exception: one line, and an exit code.
#pragma once
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace poseidon::app {

/// Runs `run(argc, argv)`. Wrong use and bad files (std::invalid_argument, spec_error) end with 2,
/// whatever else with 1, each after one line on standard error.
template <class Run>
int run_app(int argc, char** argv, Run run) {
  try {
    return run(argc, argv);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace poseidon::app
