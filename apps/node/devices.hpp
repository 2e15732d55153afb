// apps/node/devices.hpp - what poseidon-node's verbs share in reading their command lines.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace poseidon::app {

inline constexpr const char* devices_help =
    "cpu (chooses), or cpu:R for R replicas that split the batch";

/// Replicas; 0 for "cpu", which chooses for the net and the cores.
/// Errors   spec_error for anything but cpu and cpu:R.
[[nodiscard]] std::uint32_t parse_devices(const std::string& text);

/// The file of replay:FILE; nothing for other devices.
/// Errors   spec_error: replay without a file.
[[nodiscard]] std::optional<std::string> replay_profile(const std::string& text);

/// Reads the command line. False after --help and --version, which have been printed.
/// Errors   spec_error with one line that names the program's --help.
[[nodiscard]] bool parsed(CLI::App& app, int argc, char** argv);

}  // namespace poseidon::app
