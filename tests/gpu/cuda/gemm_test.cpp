// Is what cuBLAS is asked for the product that was wanted? cuBLAS reads and writes columns; here stands one in its
// place that does the same on the host, with plain loops.
#include "gpu/cuda/library.hpp"
#include "tests/cpu/hand_net.hpp"

namespace {

int calls = 0;

cublasStatus_t column_product(bool ta, bool tb, int m, int n, int k, float alpha, const float* a,
                              int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int i = 0; i < k; ++i)
        sum += (ta ? a[i + row * lda] : a[row + i * lda]) *
               (tb ? b[column + i * ldb] : b[i + column * ldb]);
      float& out = c[row + column * ldc];
      out = alpha * sum + (beta == 0 ? 0 : beta * out);
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

// The functions that gpu/cuda/library.cpp calls, in place of the libraries and the runtime.
extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t*) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "a status";
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType, int lda,
                                          long long int stride_a, const void* b, cudaDataType,
                                          int ldb, long long int stride_b, const void* beta,
                                          void* c, cudaDataType, int ldc, long long int stride_c,
                                          int batch, cublasComputeType_t, cublasGemmAlgo_t) {
  ++calls;
  for (int i = 0; i < batch; ++i)
    column_product(ta == CUBLAS_OP_T, tb == CUBLAS_OP_T, m, n, k, *static_cast<const float*>(alpha),
                   static_cast<const float*>(a) + i * stride_a, lda,
                   static_cast<const float*>(b) + i * stride_b, ldb,
                   *static_cast<const float*>(beta), static_cast<float*>(c) + i * stride_c, ldc);
  return CUBLAS_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreate(cudnnHandle_t*) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return CUDNN_STATUS_SUCCESS;
}
}

namespace poseidon::gpu {
void enter_device(const stream&) {}
}  // namespace poseidon::gpu

using namespace poseidon;
using namespace poseidon::test;

TEST_CASE(
    "gemm: cuBLAS is asked for the row-major product, transposed or not, in batches, with room "
    "between rows") {
  gpu::stream s(0, gpu::stream_use::compute);
  gpu::library library(s, {});
  struct extents {
    std::size_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {extents{1, 1, 1}, extents{5, 7, 3}, extents{4, 1, 6}, extents{2, 8, 8}}) {
    for (int way = 0; way < 8; ++way) {
      gpu::gemm_shape g;
      g.transpose_a = (way & 1) != 0;
      g.transpose_b = (way & 2) != 0;
      g.m = m, g.n = n, g.k = k;
      g.lda = (g.transpose_a ? m : k) + 2;
      g.ldb = (g.transpose_b ? k : n) + 1;
      g.ldc = n + 3;
      g.alpha = 0.5f;
      g.beta = (way & 4) != 0 ? 2.0f : 0.0f;
      g.batch = 3;
      g.stride_a = (g.transpose_a ? k : m) * g.lda;
      g.stride_b = (g.transpose_b ? n : k) * g.ldb;
      g.stride_c = m * g.ldc;
      const auto a = noise(g.batch * g.stride_a, 1), b = noise(g.batch * g.stride_b, 2),
                 before = noise(g.batch * g.stride_c, 3);
      std::vector<float> c = before;
      library.gemm(g, a.data(), b.data(), c.data());
      std::vector<float> wanted = before;
      for (std::size_t i = 0; i < g.batch; ++i)
        for (std::size_t row = 0; row < m; ++row)
          for (std::size_t column = 0; column < n; ++column) {
            float sum = 0;
            for (std::size_t t = 0; t < k; ++t)
              sum += a[i * g.stride_a + (g.transpose_a ? t * g.lda + row : row * g.lda + t)] *
                     b[i * g.stride_b + (g.transpose_b ? column * g.ldb + t : t * g.ldb + column)];
            float& out = wanted[i * g.stride_c + row * g.ldc + column];
            out = 0.5f * sum + g.beta * out;
          }
      CAPTURE(way);
      CHECK(deviation(c, wanted) < 1e-6);
    }
  }
  CHECK(calls == 32);
}
