// gpu/residual.hpp - what the sum of two blobs that ends a residual block does for its neighbours, beside the ReLU in place
// behind it. Of five times that their kernels would read or write a blob's values in forward() three are left, of seven
// in backward() four.
//
//   Where a bottom is what a BatchNorm and Scale make of a convolution's results (gpu/normalization.hpp), the sum is made
//   of those results; the Scale before it only says so.
//   The Split behind the ReLU would add the gradients of its tops; the sum reads both.
//   Both bottoms have the same gradient. Where nobody changes it in place it is written once, to the diff of the sum's
//   top, which the bottoms' producers read: a Split, or the BatchNorm and Scale of gpu/normalization.hpp.
#pragma once
#include "models/net/net.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace poseidon::gpu {

struct replica_state;

/// The blobs of a Split that bring it gradients. (Those of Accuracy, for one, do not.)
[[nodiscard]] std::vector<std::size_t> gradients_of_split(const net& n, std::size_t layer);

struct residual {
  /// Whose backward() the sum does, of two gradients.
  std::optional<std::size_t> split;
  std::vector<std::size_t> gradients;  ///< the blobs that bring them
  /// Both bottoms' gradient is that of the top: the bottoms that are a Split's tops, and the layers that normalise the others.
  bool one_gradient = false;
  std::vector<std::size_t> split_tops,
      normalizing;  ///< of the latter each BatchNorm before its Scale
};

/// By layer: of an Eltwise that has a neighbour to do something for. Before there is memory; state.orders and those of
/// state.blobs are there.
[[nodiscard]] std::vector<std::optional<residual>> find_residuals(const replica_state& state);

/// When blobs have memory: the layers that normalise a bottom of such a sum read its gradient where the sum writes it,
/// state.first_tops.
void share_gradients(replica_state& state);

}  // namespace poseidon::gpu
