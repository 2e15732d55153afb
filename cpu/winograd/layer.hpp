// cpu/winograd/layer.hpp - Convolution layers that winograd_convolution computes.
#pragma once
#include "cpu/convolution_shape.hpp"
#include "cpu/layer.hpp"

#include <memory>

namespace poseidon::cpu {

/// Is that layer faster in this way, by its shape and this processor? `engine: CAFFE` keeps a layer to the
/// direct kernels.
[[nodiscard]] bool suits_winograd(const net& graph, const net_layer& layer, const shape& bottom,
                                  const shape& top, cpu_math math);

/// For layers that it suits.
[[nodiscard]] std::unique_ptr<kernel> make_winograd_convolution(const layer_context& c);

}  // namespace poseidon::cpu
