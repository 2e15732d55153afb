// gpu/replica.hpp - one compiled net on one device: its memory, its kernels, and its copies to and from the host.
#pragma once
#include "gpu/context.hpp"
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// `host`: pinned memory for gradients. `cpu` runs the layers that have no kernel here (gpu/host_layer.hpp).
/// Errors   spec_error naming the layer, for a type or an option without kernel; gpu::error for memory that the device does not have.
[[nodiscard]] std::unique_ptr<replica> compile(std::shared_ptr<context> with,
                                               std::shared_ptr<std::pmr::memory_resource> host,
                                               std::shared_ptr<poseidon::device> cpu, const net& n,
                                               std::span<const parameter_values* const> parameters,
                                               replica_options options);

/// See device::join_gradients(). compile() has made all of them, from one net.
/// Errors   gpu::error for memory that the device does not have.
[[nodiscard]] std::size_t join(std::span<const std::shared_ptr<replica>> replicas);

/// See device::make_updates(). compile() has made all of them, from one net; join() comes before.
/// Errors   gpu::error for memory that the device does not have.
[[nodiscard]] std::shared_ptr<device_updates> make_updates(
    std::span<const std::shared_ptr<replica>> replicas, const updates_wanted& wanted);

}  // namespace poseidon::gpu
