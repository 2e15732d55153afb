// models/net/fusion.hpp - questions about the layers around a layer: what may its kernel compute for them? Fusion is allowed only
// without replica_options::keep_all_diffs, since some blobs then hold the result of a later layer.
#pragma once
#include "models/net/net.hpp"

#include <optional>

namespace poseidon {

struct following_relu {
  std::size_t layer;
  float slope;
};
/// The next layer, if it is a ReLU that works in place on the first top of `layer`.
[[nodiscard]] std::optional<following_relu> relu_in_place_after(const net& n, std::size_t layer);

/// The next layer, if it is a Scale that works in place on the first top of `layer` with one learned factor for each channel.
[[nodiscard]] std::optional<std::size_t> scale_in_place_after(const net& n, std::size_t layer);

/// Whether `layer` is a max pooling, without a mask, of the output of a ReLU with slope 0. The gradient of both layers is then
/// the pooling's, provided that the pooling gives no gradient to a value that is 0.
[[nodiscard]] bool is_max_pooling_of_relu(const net& n, std::size_t layer);

/// Whether a Scale or Bias has one factor for each channel (axis 1).
[[nodiscard]] bool scales_channels(const net& n, const net_layer& layer);

}  // namespace poseidon
