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
  throw spec_error(
      "--devices " + text +
      ": expected cpu, or cpu:R with R replicas from 1 to 1024; to train also replay:FILE.");
}

std::optional<std::string> replay_profile(const std::string& text) {
  if (text.rfind("replay", 0) != 0) return std::nullopt;
  if (text.size() < 8 || text[6] != ':')
    throw spec_error("--devices " + text +
                     ": which profile? Give --devices replay:FILE, a file that poseidon-node time "
                     "--profile-out writes; models/zoo has some.");
  return text.substr(7);
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
