// gpu/replica.hpp - one compiled net on one device: its memory, its kernels, and what travels to and from the host.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// `host`: where gradients come home to, pinned.
/// Errors   spec_error naming the layer, for a type or an option without kernel; gpu::error for what does not fit.
[[nodiscard]] std::unique_ptr<replica> compile(std::shared_ptr<context> with,
                                               std::shared_ptr<std::pmr::memory_resource> host,
                                               const net& n,
                                               std::span<const parameter_values* const> parameters,
                                               replica_options options);

}  // namespace poseidon::gpu
