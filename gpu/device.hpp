// gpu/device.hpp - the GPUs of a node as one device, and what the plug-in exports.
#pragma once
#include "gpu/runtime/library.hpp"
#include "models/device/device_plugin.hpp"

namespace poseidon::gpu {

/// Replica i lies on ordinals[i % size]. `cpu` does the arithmetic on the host, and computes the layers that have no
/// kernel here.
/// Errors   gpu::error: no driver, no such device.
[[nodiscard]] std::shared_ptr<device> make_device(const plugin_choice& choice,
                                                  std::shared_ptr<device> cpu);

/// "GPU 0: NVIDIA H100 80GB HBM3, 79.2 GiB, compute capability 9.0"
[[nodiscard]] std::vector<std::string> list_devices();

}  // namespace poseidon::gpu
