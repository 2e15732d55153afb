// cpu/cpu_device.hpp - the CPU backend: oneDNN where it has the primitive, our own AVX2 kernels
// elsewhere.
#pragma once
#include "cpu/cpu_math.hpp"
#include "models/device/device.hpp"

#include <memory>

namespace poseidon {

/// Errors   std::runtime_error if the processor lacks AVX2 and FMA, or the products that `math` asks for.
[[nodiscard]] std::shared_ptr<device> make_cpu_device(cpu_math math = cpu_math::fp32);

}  // namespace poseidon
