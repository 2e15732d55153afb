// cpu/cpu_device.hpp - the CPU backend: oneDNN where it has the primitive, our own AVX2 kernels
// elsewhere.
#pragma once
#include "models/device/device.hpp"

#include <memory>

namespace poseidon {

/// Errors   std::runtime_error if the processor lacks AVX2 and FMA.
[[nodiscard]] std::shared_ptr<device> make_cpu_device();

}  // namespace poseidon
