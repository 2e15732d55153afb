// cpu/winograd_product.hpp - the products of small matrices, one at each point, that Winograd's way comes down to.
#pragma once
#include "cpu/winograd_tiles.hpp"

namespace poseidon::cpu::winograd {

/// products = inputs * weights for the first `count` tiles, at every point; up to seven tiles more are
/// written with whatever the inputs' memory holds for them.
///
/// Shapes   inputs tiles_of(in)   weights weights_of(in, out)   products tiles_of(out)
void multiply(const winograd_shape& s, std::size_t count, const float* inputs, const float* weights,
              float* products, const prefetcher& ahead);

/// sums += transpose(inputs) * gradients over the first `count` tiles, at every point.
///
/// Shapes   inputs tiles_of(in)   gradients tiles_of(out)   sums weights_of(in, out)
void add_products(const winograd_shape& s, std::size_t count, const float* inputs,
                  const float* gradients, float* sums, const prefetcher& ahead);

}  // namespace poseidon::cpu::winograd
