// gpu/residual.hpp - the work that the sum of two blobs at the end of a residual block takes over from its neighbours,
// besides the ReLU in place behind it. Forward their kernels make 3 passes over the blob instead of 5, backward 4
// instead of 7.
//
//   Where a BatchNorm and Scale make a bottom from a convolution's results (gpu/normalization.hpp), the sum reads those
//   results and normalises them itself.
//   The Split behind the ReLU would add the gradients of its tops; the sum reads both.
//   Both bottoms have the same gradient. Where no layer changes it in place it is written once, to the diff of the sum's
//   top, which the bottoms' producers read: a Split, or the BatchNorm and Scale of gpu/normalization.hpp.
#pragma once
#include "models/net/net.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace poseidon::gpu {

struct replica_state;

/// The tops of a Split that have gradients. (The top that Accuracy reads has none.)
[[nodiscard]] std::vector<std::size_t> gradients_of_split(const net& n, std::size_t layer);

struct residual {
  /// The layer whose backward(), with two gradients, the sum takes over.
  std::optional<std::size_t> split;
  std::vector<std::size_t> gradients;  ///< the blobs with these gradients
  /// Both bottoms have the gradient of the top.
  bool one_gradient = false;
  std::vector<std::size_t> split_tops;  ///< with one_gradient: the bottoms that are a Split's tops
  /// With one_gradient: the layers that normalise the other bottoms, each BatchNorm before its Scale.
  std::vector<std::size_t> normalizing;
};

/// By layer: set for an Eltwise that takes over work of a neighbour. Called before blobs have memory, after all layouts
/// have been chosen.
[[nodiscard]] std::vector<std::optional<residual>> find_residuals(const replica_state& state);

/// Called when blobs have memory: the layers that normalise a bottom of such a sum read its gradient where the sum writes
/// it, state.first_tops.
void share_gradients(replica_state& state);

}  // namespace poseidon::gpu
