// models/device/device_plugin.hpp
//
// How a program gets devices from a shared library that it opens when it is asked for them: libposeidon_gpu.so, or
// what tests put in its place. The library has no models/ of its own and uses the program's, so both have to come
// from one build.
#pragma once
#include "models/device/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace poseidon {

enum class device_math { fp32, tf32, bf16 };
/// In which order a device has images inside. automatic: NHWC unless math is fp32.
enum class device_layout { automatic, nchw, nhwc };

/// Which of a library's devices, and how.
struct plugin_choice {
  std::vector<int> ordinals;  ///< by replica; the same one may come several times
  device_math math = device_math::tf32;
  bool deterministic = false;  ///< the same bits in every run
  bool autotune = false;       ///< the fastest measured of several ways; not with deterministic
  device_layout layout = device_layout::automatic;
};

/// What the library's one symbol, poseidon_gpu_plugin(), returns.
struct device_plugin {
  std::uint32_t contract;  ///< device_contract of its build
  const char* version;     ///< POSEIDON_VERSION of its build
  /// `host` does the arithmetic on the host, and computes the layers that only it has kernels for.
  /// Errors   std::runtime_error: what is missing on this machine, a device that is not there.
  std::shared_ptr<device> (*make)(const plugin_choice& choice, std::shared_ptr<device> host);
  /// A line for each device that plugin_choice can name.
  /// Errors   std::runtime_error: what is missing on this machine.
  std::vector<std::string> (*list)();
};

/// Raised with every change of models/device/device.hpp or of what it uses.
inline constexpr std::uint32_t device_contract = 6;

using device_plugin_entry = const device_plugin*();
inline constexpr const char* device_plugin_symbol = "poseidon_gpu_plugin";

}  // namespace poseidon
