// cpu/resizing.hpp
//
// Layers behind a Filter: the batch that reaches them differs from pass to pass. Such a layer's kernel is
// made anew when its bottoms' shapes have changed, with the tops' shapes that the layer's rule then gives.
// The memory of its blobs is that of the whole batch, which is the most there can be.
#pragma once
#include "cpu/layer.hpp"

namespace poseidon::cpu {

/// A kernel around the one that the layer's type has; it hands on the layer's passes. A pass without a
/// single sample is not computed: its tops (losses) are zero, and so are its gradients.
[[nodiscard]] std::unique_ptr<kernel> make_resizing(const layer_context& c);

}  // namespace poseidon::cpu
