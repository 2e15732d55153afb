// cpu/fingerprint.hpp - by what the results of this backend may differ from one machine to another (models/fingerprint.hpp).
#pragma once
#include "cpu/cpu_math.hpp"
#include "models/fingerprint.hpp"

#include <string>

namespace poseidon::cpu {

/// Of kernels: what they multiply, the instructions and cache sizes that oneDNN chooses them by, its version, the C library's functions.
[[nodiscard]] fingerprint fingerprint_of_kernels(cpu_math math);

/// Of what the nodes compute where a program computes the gradients: sums have the same bits everywhere, and a step calls the C library.
[[nodiscard]] fingerprint fingerprint_of_steps();

/// "expf:1f03ab22,...": a checksum of the values of each function of the C library that layers, solvers and optimizers call, at some hundred
/// places where the results of good implementations differ.
[[nodiscard]] std::string values_of_c_library();

}  // namespace poseidon::cpu
