// gpu/resizing.hpp
//
// Layers behind a Filter on a GPU, see models/device/resizing_kernel.hpp. When such a layer's forward() is called the
// Filter has run, on the host (gpu/host_layer.hpp), so its bottoms' shapes are known. Making its kernel again waits for
// the device.
#pragma once
#include "gpu/layer.hpp"

#include <functional>

namespace poseidon::gpu {

using kernel_maker = std::function<std::unique_ptr<kernel>(const layer_context&)>;

/// A kernel around the one that `make` makes, now and whenever shapes have changed.
/// Errors   see require_resizable().
[[nodiscard]] std::unique_ptr<kernel> make_resizing(const layer_context& c, kernel_maker make);

}  // namespace poseidon::gpu
