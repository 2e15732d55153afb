// cpu/layers/pixel_products.hpp - convolutions whose windows are one pixel, where all channels of a pixel lie side by side.
#pragma once
#include "cpu/layer.hpp"

#include <memory>

namespace poseidon::cpu {

/// Is that layer one product of matrices, with a row for each pixel, and does this processor multiply it in tiles?
[[nodiscard]] bool suits_pixel_products(const net& graph, const net_layer& layer,
                                        const shape& bottom, cpu_math math);

/// For layers that it suits.
[[nodiscard]] std::unique_ptr<kernel> make_pixel_products(const layer_context& c);

}  // namespace poseidon::cpu
