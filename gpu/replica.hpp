// gpu/replica.hpp - one compiled net on one device: its memory, its kernels, and what travels to and from the host.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// `host`: where gradients come home to, pinned. `cpu` runs the layers that have no kernel here (gpu/host_layer.hpp).
/// Errors   spec_error naming the layer, for a type or an option without kernel; gpu::error for what does not fit.
[[nodiscard]] std::unique_ptr<replica> compile(std::shared_ptr<context> with,
                                               std::shared_ptr<std::pmr::memory_resource> host,
                                               std::shared_ptr<poseidon::device> cpu, const net& n,
                                               std::span<const parameter_values* const> parameters,
                                               replica_options options);

/// See device::join_gradients(). All of them are compile()'s, of one net.
/// Errors   gpu::error for memory that is not to be had.
[[nodiscard]] std::size_t join(std::span<const std::shared_ptr<replica>> replicas);

/// See device::make_updates(). All of them are compile()'s, of one net, and joined if they are to be.
/// Errors   gpu::error for memory that is not to be had.
[[nodiscard]] std::shared_ptr<device_updates> make_updates(
    std::span<const std::shared_ptr<replica>> replicas, const updates_wanted& wanted);

}  // namespace poseidon::gpu
