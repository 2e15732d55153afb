// gpu/normalization.hpp - what a BatchNorm and the Scale in place behind it share, with the ReLU in place behind that: of
// ten times that their kernels would read or write a blob's values in forward() three are left, of thirteen in backward()
// five.
//
//   forward   BatchNorm finds the statistics; Scale normalises, and writes y = relu(factor * that + bias)
//   backward  Scale sums over dy, which is the gradient of y; BatchNorm makes dx of the same dy
//
// Both passes backwards want x. Where BatchNorm works in place on the results of a convolution, those are written
// beside the blob, where they last; else Scale copies them, and it is four times forward.
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
  device_memory copy;  ///< of x, for backward(); none where x itself lasts
  device_memory own;   ///< what `after` and `means` are in
  /// What Scale does, [channels] each: copies, for by BatchNorm's backward() the parameters may be fresh ones.
  scaled_relu after{};
  float* means =
      nullptr;  ///< [2, channels]: of the gradient of the normalised values, and of its product with them

  /// x, as long as backward() wants it.
  [[nodiscard]] values kept() const {
    return copy.size() != 0 ? values(copy.bytes(), x.type()) : x;
  }
};

struct sharing_scale {
  std::size_t layer;
  bool goes_back;
};
/// The Scale with which a BatchNorm is to share its work, if there is one.
[[nodiscard]] std::optional<sharing_scale> scale_to_share_with(const replica_state& state,
                                                               std::size_t batch_norm);

/// Before there are kernels: gives the results of convolutions that BatchNorms normalise in place, and will want again, memory of
/// their own, state.first_tops of the convolution and state.first_bottoms of the BatchNorm.
/// Errors   gpu::error (memory) as layer_context::allocate().
void keep_inputs_of_normalizations(replica_state& state);

}  // namespace poseidon::gpu
