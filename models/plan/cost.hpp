// models/plan/cost.hpp - what a layer costs, as pure arithmetic on shapes.
#pragma once
#include "models/net/net.hpp"

#include <cstdint>

namespace poseidon {

/// Floating-point operations (a multiply and an add are two) of one pass over the net's batch, for
/// layers that multiply matrices: Convolution, Deconvolution, InnerProduct. 0 for all others, which are bound by memory.
struct layer_flops {
  std::uint64_t forward = 0;
  std::uint64_t backward = 0;  ///< for the diffs and gradients that are needed
};
[[nodiscard]] layer_flops flops_of(const net& n, std::size_t layer);

}  // namespace poseidon
