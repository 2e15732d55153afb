#include "gpu/cuda/check.hpp"

namespace poseidon::gpu::cuda {
namespace {

error_kind kind_of(cudaError_t answer) {
  switch (answer) {
    case cudaErrorMemoryAllocation:
      return error_kind::memory;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorStubLibrary:
    case cudaErrorInitializationError:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
      return error_kind::absent;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidConfiguration:
    case cudaErrorNotReady:
      return error_kind::misused;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
      return error_kind::unsupported;
    default:
      return error_kind::lost;
  }
}

/// Kernels that the device cannot run, nor its driver compile for it.
std::string advice(error_kind kind) {
  if (kind != error_kind::unsupported) return "";
  return ". The kernels of this build are for CUDA architectures " POSEIDON_GPU_ARCHITECTURES
         ", and `poseidon-node device-query` says what the GPU is: build with "
         "-DPOSEIDON_GPU_ARCHITECTURES=native where it is, install a newer driver, or train with "
         "--devices cpu";
}

}  // namespace

void check(cudaError_t answer, const char* what, int device) {
  if (answer == cudaSuccess) return;
  (void)cudaGetLastError();  // answered: what is not sticky is not to be answered again
  const error_kind kind = kind_of(answer);
  throw error(kind, static_cast<int>(answer),
              "GPU " + std::to_string(device) + ": " + what + ": " + cudaGetErrorString(answer) +
                  " (" + cudaGetErrorName(answer) + ")" + advice(kind));
}

}  // namespace poseidon::gpu::cuda
