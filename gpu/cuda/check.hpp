// gpu/cuda/check.hpp - CUDA's error codes become gpu::error.
#pragma once
#include "gpu/runtime/error.hpp"

#include <cuda_runtime_api.h>
#include <string>

namespace poseidon::gpu::cuda {

/// Throws unless `answer` is success. `what`: what was asked for, "copy to the device".
void check(cudaError_t answer, const char* what, int device);

}  // namespace poseidon::gpu::cuda
