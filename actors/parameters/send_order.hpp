// actors/parameters/send_order.hpp
//
// Which frame of those that wait a link sends next: the one with the smallest number. Control frames have 0. Chunks go
// in the forward order, in which the next iteration needs them back. Managed communication (a budget for
// the link, and staleness, so that nobody waits for all of them at once) sends those first that change most.
//
// Source   Wei et al., SoCC 2015 (relative magnitude, Boesen's managed communication).
#pragma once
#include <cstdint>
#include <span>

namespace poseidon {

/// Of a gradient or factors that `version` is made of, or of a chunk of it: older versions first, because nobody can
/// compute with a version before all of it is there; within one the forward order. `layer`: the first that uses it. (With the
/// layer alone, the gradients of nodes that are ahead would go before the last factors of the version before, for which
/// the others wait, who then are behind for good.)
[[nodiscard]] constexpr std::uint64_t forward_order(std::uint64_t version, std::uint32_t layer) {
  return version << 32 | (1 + std::uint64_t{layer});
}

/// The same, but within a version the larger magnitude. Chunks of one parameter stay in order.
[[nodiscard]] std::uint64_t magnitude_order(std::uint64_t version, float magnitude);

/// The norm of `change` over that of `values`, of equal length. The largest float where `values` are all zero, or a norm is
/// not finite; 0 where nothing changes.
[[nodiscard]] float relative_magnitude(std::span<const float> change,
                                       std::span<const float> values);

}  // namespace poseidon
