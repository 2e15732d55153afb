// cpu/replica.hpp - one compiled net: its blobs, its kernels, and the step that makes them.
#pragma once
#include "cpu/layer.hpp"

namespace poseidon::cpu {

/// Compiles `n` for the calling thread's number of OpenMP threads.
/// Errors   spec_error naming the layer, for a type or an option without kernel.
[[nodiscard]] std::unique_ptr<replica> compile(const net& n,
                                               std::span<const parameter_values* const> parameters,
                                               replica_options options, cpu_math math);

}  // namespace poseidon::cpu
