// models/net/fusion.hpp - what a layer's kernel may do for its neighbours: questions about the net around a layer. Only where
// nobody looks at every blob (replica_options::keep_all_diffs), since some then hold what a later layer makes of them.
#pragma once
#include "models/net/net.hpp"

#include <optional>

namespace poseidon {

struct following_relu {
  std::size_t layer;
  float slope;
};
/// The ReLU that works in place on the first top of `layer`, next after it.
[[nodiscard]] std::optional<following_relu> relu_in_place_after(const net& n, std::size_t layer);

/// The Scale that works in place on the first top of `layer`, next after it, with learned factors, one for each channel.
[[nodiscard]] std::optional<std::size_t> scale_in_place_after(const net& n, std::size_t layer);

/// Is this a max pooling, without a mask, of what a ReLU of slope 0 leaves? Then the gradient of both is the pooling's, as long as that
/// gives nothing to a value that is 0.
[[nodiscard]] bool is_max_pooling_of_relu(const net& n, std::size_t layer);

/// Does a Scale or Bias have one factor for each channel (axis 1)?
[[nodiscard]] bool scales_channels(const net& n, const net_layer& layer);

}  // namespace poseidon
