// gpu/layer.hpp
//
// The surroundings of a layer of one replica: blobs, parameters and gradients in device memory, the stream that it
// enqueues to, the libraries. A layer is a poseidon::kernel whose forward() and backward() only enqueue to the
// compute stream and return. All that they read is ready in stream order: the replica (gpu/replica.cpp) makes the
// stream wait for fresh parameters before the pass, and has the gradients copied after it.
#pragma once
#include "gpu/fault_board.hpp"
#include "gpu/kernels/channels.hpp"
#include "gpu/layout.hpp"
#include "gpu/residual.hpp"
#include "gpu/runtime/library.hpp"
#include "models/device/replica_base.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poseidon::gpu {

/// Pointers are to device memory and stay for the replica's life.
struct gpu_blob {
  const shape* extents = nullptr;
  layout order = layout::nchw;
  gpu::values data;
  gpu::values diff;  ///< null where no layer needs it
  [[nodiscard]] std::size_t values() const { return static_cast<std::size_t>(count(*extents)); }
  [[nodiscard]] std::size_t bytes() const { return values() * width(type_of(order)); }
};

/// Memory for a blob's values, as values.
[[nodiscard]] inline values values_in(const device_memory& m, const gpu_blob& like) {
  return {m.bytes(), type_of(like.order)};
}

/// See gpu/shared_gradient.hpp, and gpu/converted_blobs.hpp.
class shared_gradient;
class converted_blobs;
/// See gpu/normalization.hpp.
struct scaled_normalization;

/// Where one layer writes the gradient of one parameter: between begin() and end(), once per pass.
class gradient_slot {
 public:
  gradient_slot() = default;
  explicit gradient_slot(float* target, std::size_t values,
                         std::shared_ptr<shared_gradient> with = {})
      : target_(target), values_(values), shared_(std::move(with)) {}
  [[nodiscard]] bool wanted() const { return target_ != nullptr; }
  [[nodiscard]] std::size_t values() const { return values_; }
  [[nodiscard]] float* begin() { return target_; }  ///< to be overwritten
  void end();

 private:
  float* target_ = nullptr;
  std::size_t values_ = 0;
  std::shared_ptr<shared_gradient> shared_;
};

/// Everything one replica owns. Filled by compile(), then only its kernels touch it, one at a time.
struct replica_state : replica_base {
  int device;
  stream& compute;
  library& libraries;
  std::vector<shape> extents = {};            ///< by net blob
  std::vector<gpu_blob> blobs = {};           ///< by net blob
  std::vector<layout> orders = {};            ///< by layer: the layout of its images
  std::vector<const float*> parameters = {};  ///< by net parameter, in device memory
  /// By net parameter, in device memory; null without backward.
  std::vector<float*> gradients = {};
  /// By net parameter; null where a single layer writes the gradient.
  std::vector<std::shared_ptr<shared_gradient>> shared = {};
  std::vector<device_memory> memory = {};         ///< holds what all of these point to
  std::unique_ptr<fault_board> faults = nullptr;  ///< errors of all layers
  /// By net parameter: the gradients to be copied, which are sums where options.passes is above 1.
  std::vector<float*> sums = {};
  /// By layer: kernels before it do its forward(), and its backward().
  std::vector<bool> forward_done = std::vector<bool>(graph.layers.size());
  std::vector<bool> backward_done = std::vector<bool>(graph.layers.size());
  /// By layer: its first bottom or top, where data or diff do not lie in the blob (gpu/normalization.hpp,
  /// gpu/residual.hpp).
  std::vector<std::optional<gpu_blob>> first_bottoms =
      std::vector<std::optional<gpu_blob>>(graph.layers.size());
  std::vector<std::optional<gpu_blob>> first_tops =
      std::vector<std::optional<gpu_blob>>(graph.layers.size());
  std::vector<std::optional<residual>> residuals = {};  ///< by layer
  /// By layer: what a Scale shares with the BatchNorm before it, whose second half it does.
  std::vector<std::shared_ptr<scaled_normalization>> normalizations =
      std::vector<std::shared_ptr<scaled_normalization>>(graph.layers.size());
};

/// The arguments of a layer's maker.
struct layer_context : layer_base<replica_state> {
  /// The blobs that the layer has in another layout than the net.
  const converted_blobs* converted = nullptr;

  [[nodiscard]] stream& compute() const { return state.compute; }
  [[nodiscard]] const gpu_blob& bottom(std::size_t i) const {
    const auto& beside = state.first_bottoms[index];
    return i == 0 && beside ? *beside : blob(layer.bottoms.at(i));
  }
  [[nodiscard]] const gpu_blob& top(std::size_t i) const {
    const auto& beside = state.first_tops[index];
    return i == 0 && beside ? *beside : blob(layer.tops.at(i));
  }
  [[nodiscard]] const shape& bottom_shape(std::size_t i) const { return *bottom(i).extents; }
  [[nodiscard]] const shape& top_shape(std::size_t i) const { return *top(i).extents; }
  /// The layout of the layer's images.
  [[nodiscard]] layout order() const { return state.orders[index]; }
  /// A blob with its channels on axis 1, as the layer has it: in NHWC each place is an `outer`, of plane 1.
  [[nodiscard]] channel_shape channels_of(const shape& s) const;
  /// The slope of the ReLU in place behind this layer, whose work this layer's kernel takes over; 1, which changes
  /// nothing, without such a ReLU or with keep_all_diffs. `backward`: takes over its backward(), too.
  [[nodiscard]] float take_relu(bool backward) const;
  /// Device memory of a parameter's values, the same for the replica's life; null if there is no such slot.
  [[nodiscard]] const float* parameter(std::size_t slot) const;
  [[nodiscard]] gradient_slot gradient(std::size_t slot) const;
  /// Memory for the change of a running statistic (net_parameter::average_momentum); null without a backward pass.
  [[nodiscard]] float* statistic(std::size_t slot) const;
  /// Memory of the layer's own, zeros.
  /// Errors   gpu::error (memory) with the layer, the memory that it needs, the memory that is free, and advice.
  [[nodiscard]] device_memory allocate(std::size_t bytes) const;
  /// The place where the layer's kernels report a number in a bottom that they cannot use. `say` makes the message.
  [[nodiscard]] label_fault* fault(fault_board::text say) const {
    return state.faults->at(index, std::move(say));
  }

 private:
  [[nodiscard]] const gpu_blob& blob(std::size_t b) const;
};

using layer_maker = std::unique_ptr<kernel> (*)(const layer_context&);

/// Without data layers, which the replica makes itself (gpu/source.cpp).
struct layer_type {
  const char* name;
  layer_maker make;
  /// The layouts that the kernels of such a layer take; null: only NCHW.
  layout_option (*images)(const net& n, const net_layer& layer) = nullptr;
};
/// Null for a type without kernel here. (gpu/layers/table.cpp)
[[nodiscard]] const layer_type* find_layer_type(std::string_view name);
[[nodiscard]] std::string known_layer_types();

}  // namespace poseidon::gpu
