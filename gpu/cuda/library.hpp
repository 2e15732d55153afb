// gpu/cuda/library.hpp - what one stream has of cuBLAS and cuDNN.
#pragma once
#include "gpu/cuda/convolution_plan.hpp"
#include "gpu/runtime/library.hpp"

#include <cublas_v2.h>
#include <cudnn.h>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace poseidon::gpu {

/// The device of a stream becomes that of the calling thread.
void enter_device(const stream& s);

namespace cuda {

/// Throws unless `answer` is success. `what`: what was asked for.
void check(cublasStatus_t answer, const char* what);

}  // namespace cuda

struct library::state {
  explicit state(stream& s);
  ~state();
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  /// The plan for one direction of a convolution of `with`, whose state this is: made once, and tried where the options
  /// say so. The workspace grows to what it needs.
  [[nodiscard]] std::shared_ptr<const cuda::convolution_plan> plan(library& with,
                                                                   const convolution_shape& shape,
                                                                   convolution_direction direction);

  int device;
  cublasHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  device_memory blas_workspace;
  std::optional<cuda::cudnn_device> properties;  ///< when the first plan asks
  std::map<std::pair<convolution_shape, convolution_direction>,
           std::shared_ptr<const cuda::convolution_plan>>
      plans;
  device_memory workspace;  ///< shared by all plans, which run in turn
};

}  // namespace poseidon::gpu
