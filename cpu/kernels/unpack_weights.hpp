// cpu/kernels/unpack_weights.hpp - the gradient of a 1x1 convolution's weights from oneDNN's blocks to Caffe's layout.
#pragma once
#include <cstddef>

namespace poseidon::cpu {

/// Copies blocks [out/16][in/16][16 of in][16 of out] to rows [out][in]; both are multiples of 16.
/// Cost     that of memory. oneDNN's own copy writes value by value into rows that often lie a power of two apart, 1 GB/s.
void unpack_weights(const float* blocks, std::size_t out, std::size_t in, float* rows);

}  // namespace poseidon::cpu
