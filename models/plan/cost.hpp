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

/// Bytes of float32 that one pass over the net's batch reads and writes at least, if each array that a layer needs goes through the
/// memory once: no cache keeps anything, and nothing is read twice. 0 for layers that only bring data, and where a layer only gives its bottom
/// another name (Reshape, Flatten, Split forward; backward a Split adds its tops' diffs).
struct layer_bytes {
  std::uint64_t forward = 0;  ///< bottoms and parameters in, tops out
  /// The tops' diffs and what the layer needs of its forward pass in, the bottoms' diffs and the gradients out.
  std::uint64_t backward = 0;
};
[[nodiscard]] layer_bytes bytes_of(const net& n, std::size_t layer);

}  // namespace poseidon
