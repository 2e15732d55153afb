// gpu/host_layer.hpp
//
// A layer of a type that has a kernel on the CPU and none on the GPU: its bottoms are copied to the host, the CPU's kernel
// runs there, and its tops are copied back. The thread that issues kernels waits for the device in the middle of the
// pass. This is the cost of such a layer, of which the user is warned (device::on_host()).
#pragma once
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// Does this type have a kernel on `cpu` and none here?
[[nodiscard]] bool runs_on_host(std::string_view type, const device& cpu);

/// Its tops may have fewer samples than the net says, as a Filter's have: forward() sets their extents.
/// `host`: pinned memory for the copies. Both outlive the kernel.
/// Not for layers that draw random numbers: these depend on the layer's place in its net, and here it is alone in one.
/// Errors   spec_error naming the layer, for a layer that learns; and the errors of the CPU's kernel.
[[nodiscard]] std::unique_ptr<kernel> make_host_layer(const layer_context& c, device& cpu,
                                                      std::pmr::memory_resource& host);

}  // namespace poseidon::gpu
