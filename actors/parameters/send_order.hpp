// actors/parameters/send_order.hpp
//
// Which waiting frame a link sends next: the one with the smallest number. Control frames have 0. Chunks go
// in the forward order, in which the next iteration needs them back. Managed communication (a budget for
// the link, and staleness, so that no layer waits for all of them) sends those first that change most.
//
// Source   Wei et al., SoCC 2015 (relative magnitude, Boesen's managed communication).
#pragma once
#include "models/ids.hpp"

#include <cstdint>
#include <span>

namespace poseidon {

/// The number of a chunk of `version`, or of a gradient or factors that `version` is computed from: older versions first,
/// because no node can compute with a version before all of it has arrived; within a version the forward order. `layer`: the
/// first that uses the parameter. (By layer alone, the gradients of a node that is ahead would go before its last factors of
/// the version before, for which the other nodes wait; they would stay behind permanently.)
[[nodiscard]] constexpr std::uint64_t forward_order(std::uint64_t version, layer_id layer) {
  return version << 32 | (1 + std::uint64_t{value(layer)});
}

/// Older versions first; within a version the larger magnitude. Chunks of one parameter stay in order.
[[nodiscard]] std::uint64_t magnitude_order(std::uint64_t version, float magnitude);

/// The norm of `change` over that of `values`, of equal length. The largest float where `values` are all zero, or a norm is
/// not finite; 0 where nothing changes.
[[nodiscard]] float relative_magnitude(std::span<const float> change,
                                       std::span<const float> values);

}  // namespace poseidon
