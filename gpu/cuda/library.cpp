// gpu/cuda/library.cpp - gpu/runtime/library.hpp with cuBLAS, and what its cuDNN half (convolution.cpp) shares with it.
#include "gpu/cuda/library.hpp"

#include "gpu/cuda/check.hpp"

#include <limits>

namespace poseidon::gpu {
namespace {

/// cuBLAS wants 32 MiB on Hopper for its fastest ways; given by us, it never allocates in the loop.
constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20;

int to_int(std::size_t n) {
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw error(
        error_kind::unsupported, 0,
        "a matrix product of " + std::to_string(n) + " rows or columns: cuBLAS takes 2^31 - 1");
  return static_cast<int>(n);
}

cublasComputeType_t compute_type(math precision) {
  switch (precision) {
    case math::fp32:
      return CUBLAS_COMPUTE_32F;
    case math::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case math::bf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
  }
  return CUBLAS_COMPUTE_32F;
}

}  // namespace

void cuda::check(cublasStatus_t answer, const char* what) {
  if (answer == CUBLAS_STATUS_SUCCESS) return;
  const error_kind kind = answer == CUBLAS_STATUS_ALLOC_FAILED       ? error_kind::memory
                          : answer == CUBLAS_STATUS_NOT_INITIALIZED  ? error_kind::absent
                          : answer == CUBLAS_STATUS_NOT_SUPPORTED    ? error_kind::unsupported
                          : answer == CUBLAS_STATUS_EXECUTION_FAILED ? error_kind::lost
                                                                     : error_kind::misused;
  throw error(kind, answer, std::string("cuBLAS: ") + what + ": " + cublasGetStatusString(answer));
}

library::state::state(stream& s)
    : device(s.device()), blas_workspace(s.device(), blas_workspace_bytes) {
  using cuda::check;
  const auto on = static_cast<cudaStream_t>(s.native());
  enter_device(s);
  check(cublasCreate(&blas), "open the library");
  check(cudnnCreate(&dnn));
  check(cublasSetStream(blas, on), "choose the stream");
  check(cublasSetWorkspace(blas, blas_workspace.bytes(), blas_workspace.size()),
        "hand over workspace");
  check(cudnnSetStream(dnn, on));
}

library::state::~state() {
  if (dnn != nullptr) (void)cudnnDestroy(dnn);
  if (blas != nullptr) (void)cublasDestroy(blas);
}

library::library(stream& s, library_options options)
    : stream_(s), options_(options), state_(std::make_unique<state>(s)) {}
library::~library() = default;

// cuBLAS reads and writes columns: what it takes for C is our C transposed, and C^T = op(B)^T op(A)^T.
void library::gemm(const gemm_shape& g, const float* a, const float* b, float* c) {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  enter_device(stream_);
  const auto op = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto stride = [](std::size_t values) { return static_cast<long long>(values); };
  cuda::check(
      cublasGemmStridedBatchedEx(
          state_->blas, op(g.transpose_b), op(g.transpose_a), to_int(g.n), to_int(g.m), to_int(g.k),
          &g.alpha, b, CUDA_R_32F, to_int(g.ldb), stride(g.stride_b), a, CUDA_R_32F, to_int(g.lda),
          stride(g.stride_a), &g.beta, c, CUDA_R_32F, to_int(g.ldc), stride(g.stride_c),
          to_int(g.batch), compute_type(options_.precision), CUBLAS_GEMM_DEFAULT),
      "matrix product");
}

}  // namespace poseidon::gpu
