// gpu/resizing.hpp
//
// Layers behind a Filter: the batch that reaches them differs from pass to pass. When such a layer's forward() is called
// the Filter has run, on the host (gpu/host_layer.hpp), so its bottoms' shapes are known; where they have changed the
// layer's kernel is made anew, which waits for the device. The memory of its blobs is that of the whole batch.
#pragma once
#include "gpu/layer.hpp"

#include <functional>

namespace poseidon::gpu {

/// A kernel around the one that `make` makes, now and whenever shapes have changed; it hands on the layer's passes. A
/// pass without a single sample is not computed: its tops (losses) are zero, and so are its gradients.
/// Errors   spec_error naming the layer: an HDF5Output, whose file has rows of one batch.
[[nodiscard]] std::unique_ptr<kernel> make_resizing(
    const layer_context& c, std::function<std::unique_ptr<kernel>(const layer_context&)> make);

}  // namespace poseidon::gpu
