#include "apps/node/devices.hpp"

#include "models/spec_file.hpp"

#include <CLI/CLI.hpp>

namespace poseidon::app {

std::uint32_t parse_devices(const std::string& text) {
  if (text == "cpu") return 0;
  if (text.rfind("cpu:", 0) == 0) {
    try {
      const auto n = std::stoul(text.substr(4));
      if (n >= 1 && n <= 1024) return static_cast<std::uint32_t>(n);
    } catch (const std::exception&) {
    }
  }
  throw spec_error("--devices " + text +
                   ": expected cpu, or cpu:R with R replicas from 1 to 1024.");
}

bool parsed(CLI::App& app, int argc, char** argv) {
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
