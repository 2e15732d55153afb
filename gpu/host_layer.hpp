// gpu/host_layer.hpp
//
// A layer of a type that the CPU has a kernel for and the GPU has not: its bottoms come home, the CPU's kernel runs on the
// host, its tops go back. The thread that issues kernels waits for the device in the middle of the pass, which is what
// such a layer costs, and why its user is warned (device::on_host()).
#pragma once
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// Is there no kernel here for this type, but one on `cpu`?
[[nodiscard]] bool runs_on_host(std::string_view type, const device& cpu);

/// Its tops may have fewer samples than the net says, as a Filter's: their extents are set by forward().
/// `host`: pinned memory for what comes home. Both outlive the kernel.
/// Random numbers are keyed by a layer's place in its net, and here it is alone: not for layers that draw some.
/// Errors   spec_error naming the layer, for one that learns, and what the CPU's kernel refuses.
[[nodiscard]] std::unique_ptr<kernel> make_host_layer(const layer_context& c, device& cpu,
                                                      std::pmr::memory_resource& host);

}  // namespace poseidon::gpu
