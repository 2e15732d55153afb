// models/device/device_plugin.hpp
//
// How a program gets devices from a shared library that it opens when a user asks for them: libposeidon_gpu.so, or the
// tests' substitute. The library has no models/ of its own and uses the program's, so both have to come from one build.
#pragma once
#include "models/device/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace poseidon {

enum class device_math { fp32, tf32, bf16 };
/// The order of images inside a device. automatic: NHWC unless math is fp32.
enum class device_layout { automatic, nchw, nhwc };

/// The devices of a library to use, and their options.
struct plugin_choice {
  std::vector<int> ordinals;  ///< by replica; one device may stand several times
  device_math math = device_math::tf32;
  bool deterministic = false;  ///< the same bits in every run
  bool autotune = false;       ///< the fastest measured of several ways; not with deterministic
  device_layout layout = device_layout::automatic;
};

/// The result of the library's one symbol, poseidon_gpu_plugin().
struct device_plugin {
  std::uint32_t contract;  ///< device_contract of its build
  const char* version;     ///< POSEIDON_VERSION of its build
  /// `host` does the arithmetic on the host, and computes the layers that only it has kernels for.
  /// Errors   std::runtime_error: a part that is missing on this machine, a device that it does not have.
  std::shared_ptr<device> (*make)(const plugin_choice& choice, std::shared_ptr<device> host);
  /// A line for each device that plugin_choice can name.
  /// Errors   std::runtime_error: a part that is missing on this machine.
  std::vector<std::string> (*list)();
};

/// Raised with every change of models/device/device.hpp or of what it uses.
inline constexpr std::uint32_t device_contract = 6;

using device_plugin_entry = const device_plugin*();
inline constexpr const char* device_plugin_symbol = "poseidon_gpu_plugin";

}  // namespace poseidon
