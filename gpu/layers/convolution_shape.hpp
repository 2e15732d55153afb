// gpu/layers/convolution_shape.hpp - what a convolution's specification says, resolved for its blobs.
#pragma once
#include "gpu/runtime/convolution_shape.hpp"
#include "models/net/net.hpp"

namespace poseidon::gpu {

/// Reads convolution_param of a layer that passes require_convolvable(). For a Deconvolution `image` is the top and
/// `result` the bottom, with in and out as the convolution has them whose gradient it is.
[[nodiscard]] convolution_shape resolve_convolution(const net_layer& layer, const shape& image,
                                                    const shape& result);

}  // namespace poseidon::gpu
