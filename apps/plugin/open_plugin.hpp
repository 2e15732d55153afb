// apps/plugin/open_plugin.hpp - finds and opens the shared library for GPUs.
#pragma once
#include "models/device/device_plugin.hpp"

#include <filesystem>
#include <memory>

namespace poseidon::app {

/// Opens the plug-in in `file`, by default libposeidon_gpu.so in the program's folder or in ../lib/poseidon. It stays open
/// until the program ends. The driver is looked for first, so that CUDA's libraries are not mapped without it.
/// Errors   std::runtime_error with one line: no driver, no plug-in, a library that the plug-in needs, another build.
[[nodiscard]] const device_plugin& open_plugin(const std::filesystem::path& file);

/// Opens the plug-in and makes its devices. `asked`: the user's words, "--devices 0,1".
/// Errors   those of open_plugin() and device_plugin::make, after `asked`.
[[nodiscard]] std::shared_ptr<device> open_devices(const std::filesystem::path& file,
                                                   const plugin_choice& choice,
                                                   std::shared_ptr<device> host,
                                                   const std::string& asked);

}  // namespace poseidon::app
