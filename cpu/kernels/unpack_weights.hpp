// cpu/kernels/unpack_weights.hpp - the gradient of a 1x1 convolution's weights from oneDNN's blocks to Caffe's layout.
#pragma once
#include <cstddef>

namespace poseidon::cpu {

/// Copies blocks [out/16][in/16][16 of in][16 of out] to rows [out][in]; both are multiples of 16.
/// Cost     a block at a time is turned in the first cache, and its rows are written as whole cache lines. oneDNN's own copy is faster but where rows
///          are whole pages, whose beginnings compete for few places of the caches: there it takes three times as long.
void unpack_weights(const float* blocks, std::size_t out, std::size_t in, float* rows);

}  // namespace poseidon::cpu
