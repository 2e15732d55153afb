// apps/cli.hpp - what every program and verb does with its arguments.
#pragma once
#include "models/spec/spec_file.hpp"

#include <CLI/CLI.hpp>

#include <string>

namespace poseidon::app {

/// Reads the arguments of a program or verb. False: --help has been printed. Errors   spec_error.
[[nodiscard]] inline bool parsed(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    app.exit(e);
    return false;
  } catch (const CLI::ParseError& e) {
    throw spec_error(std::string(e.what()) + ". " + app.get_name() + " --help lists the options.");
  }
  return true;
}

}  // namespace poseidon::app
