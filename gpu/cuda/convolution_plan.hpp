// gpu/cuda/convolution_plan.hpp
//
// One direction of one convolution in cuDNN: an operation graph of one node, the engine that the heuristics prefer among
// those that our options allow, and its workspace. Planning needs only the properties of a GPU; running needs the GPU.
#pragma once
#include "gpu/cuda/cudnn_descriptor.hpp"
#include "gpu/runtime/convolution_shape.hpp"
#include "gpu/runtime/library.hpp"
#include "models/shape.hpp"

#include <memory>
#include <string>
#include <vector>

namespace poseidon::gpu::cuda {

/// The GPU that plans are made for.
class cudnn_device {
 public:
  /// A GPU of this machine.
  explicit cudnn_device(int ordinal);
  /// One that need not be here, from cuDNN's own JSON of its properties ("deviceVer", "multiProcessorCount",
  /// ...).
  explicit cudnn_device(const std::string& properties);
  [[nodiscard]] const cudnn_descriptor& properties() const { return properties_; }

 private:
  cudnn_descriptor properties_;
};

/// What cuDNN says of an engine, whose number counts for one direction only.
struct engine_facts {
  convolution_direction direction;
  std::int64_t number;
  std::vector<cudnnBackendNumericalNote_t> notes;
};

/// Why such an engine will not do; empty if it will.
[[nodiscard]] std::string objection(const engine_facts& engine, const library_options& options);

class convolution_plan {
 public:
  /// Errors   gpu::error naming the convolution, the options, and the reason against the last engine.
  convolution_plan(const cudnn_device& device, const convolution_shape& shape,
                   convolution_direction direction, const library_options& options);

  /// The first `most` allowed engines in the order of the heuristics; at least one.
  /// Errors   as above.
  [[nodiscard]] static std::vector<convolution_plan> several(const cudnn_device& device,
                                                             const convolution_shape& shape,
                                                             convolution_direction direction,
                                                             const library_options& options,
                                                             std::size_t most);

  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_bytes_; }

  /// On the stream that `handle` is set to. `x` are the images, `w` the weights, `y` the results; the direction
  /// says which of them is written, whole.
  void run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
           void* workspace) const;

  /// The choice of the heuristics, for logs and tests.
  [[nodiscard]] const engine_facts& engine() const { return engine_; }

 private:
  /// One operation, with what its descriptor refers to.
  struct operation_graph;
  struct refusal {
    std::string why;
  };
  /// Errors   refusal: this engine configuration will not do.
  convolution_plan(const cudnn_device& device, std::shared_ptr<const operation_graph> graph,
                   convolution_direction direction, cudnn_descriptor way,
                   const library_options& options);

  std::shared_ptr<const operation_graph> graph_;
  cudnn_descriptor way_, plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  std::size_t workspace_bytes_ = 0;
  engine_facts engine_;
};

/// "data gradient of a convolution of 32x96x27x27 with 256x48x5x5, 2 groups"
[[nodiscard]] std::string to_string(const convolution_shape& shape,
                                    convolution_direction direction);

}  // namespace poseidon::gpu::cuda
