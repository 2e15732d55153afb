// The errors that CUDA's answers become. The runtime that would give them is not linked.
#include "gpu/cuda/check.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace poseidon::gpu;

extern "C" {
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "no kernel image is available";
}
const char* cudaGetErrorName(cudaError_t) {
  return "cudaErrorOfSomeKind";
}
}

namespace {

error answered(cudaError_t answer) {
  try {
    cuda::check(answer, "start a kernel", 3);
  } catch (const error& e) {
    return e;
  }
  FAIL("no error");
  return {error_kind::lost, 0, ""};
}

}  // namespace

TEST_CASE("cuda: an answer says which GPU, what was asked for, and whose fault it is") {
  CHECK_NOTHROW(cuda::check(cudaSuccess, "start a kernel", 0));
  const error lost = answered(cudaErrorLaunchFailure);
  CHECK(lost.kind() == error_kind::lost);
  CHECK(lost.code() == cudaErrorLaunchFailure);
  CHECK(std::string(lost.what()) ==
        "GPU 3: start a kernel: no kernel image is available (cudaErrorOfSomeKind)");
  CHECK(answered(cudaErrorMemoryAllocation).kind() == error_kind::memory);
  CHECK(answered(cudaErrorNoDevice).kind() == error_kind::absent);
  CHECK(answered(cudaErrorInvalidValue).kind() == error_kind::misused);
}

TEST_CASE("cuda: a GPU that this build has no kernels for is not lost: its user hears what to do") {
  for (const auto answer : {cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion}) {
    const error e = answered(answer);
    CHECK(e.kind() == error_kind::unsupported);
    const std::string text = e.what();
    CHECK(text.find("CUDA architectures 75-virtual") != std::string::npos);
    CHECK(text.find("-DPOSEIDON_GPU_ARCHITECTURES=native") != std::string::npos);
  }
}
