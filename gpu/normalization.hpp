// gpu/normalization.hpp - what a BatchNorm, the Scale in place behind it and the ReLU in place behind that share. Forward
// they make 3 passes over the blob instead of 10, backward 5 instead of 13.
//
//   forward   BatchNorm finds the statistics; Scale normalises, and writes y = relu(factor * that + bias)
//   backward  Scale sums over dy, which is the gradient of y; BatchNorm computes dx from the same dy
//
// Both backward passes need x. Where BatchNorm works in place on the results of a convolution, these are written to
// memory of their own and stay there; else Scale copies them, and forward makes 4 passes.
#pragma once
#include "gpu/layer.hpp"

#include <optional>

namespace poseidon::gpu {

struct scaled_normalization {
  values x;  ///< BatchNorm's bottom
  channel_statistics statistics{};
  const float *factor = nullptr, *bias = nullptr;  ///< Scale's, [channels]; bias may be null
  channel_shape channels;
  bool goes_back = false;
  bool added = false;  ///< the sum behind Scale does its forward() (gpu/residual.hpp)
  device_memory copy;  ///< copy of x, for backward(); empty where x itself stays
  device_memory own;   ///< memory of `after` and `means`
  /// Scale's factor and bias, [channels] each: copies, because at BatchNorm's backward() the parameters may be newer.
  scaled_relu after{};
  /// [2, channels]: means of the gradient of the normalised values, and of its product with them.
  float* means = nullptr;

  /// x, until backward() has read it.
  [[nodiscard]] values kept() const {
    return copy.size() != 0 ? values(copy.bytes(), x.type()) : x;
  }
};

struct sharing_scale {
  std::size_t layer;
  bool goes_back;
};
/// The Scale with which a BatchNorm shares its work, if there is one.
[[nodiscard]] std::optional<sharing_scale> scale_to_share_with(const replica_state& state,
                                                               std::size_t batch_norm);

/// Called before kernels are made. Gives memory of their own to the results of convolutions that BatchNorms normalise in
/// place and need again: state.first_tops of the convolution, state.first_bottoms of the BatchNorm.
/// Errors   gpu::error (memory) as layer_context::allocate().
void keep_inputs_of_normalizations(replica_state& state);

}  // namespace poseidon::gpu
