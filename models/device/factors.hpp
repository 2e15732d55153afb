// models/device/factors.hpp - sufficient factors, of which the weight gradient of an inner product is the product.
#pragma once
#include <algorithm>
#include <cstddef>

namespace poseidon {

/// u = dy [rows, outputs] and v = x [rows, inputs] of one layer, over all that one node computes in a
/// clock: its micro-batches, then its replicas, then the rows of each. The gradient is the product of u
/// transposed and v, summed over rows, and the bias's gradient the sum of u's rows.
struct factor_shape {
  std::size_t rows = 0;  ///< 0: the layer has no factors
  std::size_t outputs = 0, inputs = 0;
  bool transposed = false;  ///< weights, and so their gradient, lie as [inputs, outputs]

  [[nodiscard]] std::size_t u_values() const { return rows * outputs; }
  [[nodiscard]] std::size_t values() const { return rows * (outputs + inputs); }
};

/// Upper limit of the values in one frame.
inline constexpr std::size_t max_factor_piece = (2u << 20) / sizeof(float);

/// The number of values in the frame that begins with value `first`, counted over u and then v; no frame holds values of
/// both. 0 behind the end.
[[nodiscard]] inline std::size_t factor_piece(const factor_shape& s, std::size_t first) {
  const auto end = first < s.u_values() ? s.u_values() : s.values();
  return first < end ? std::min(max_factor_piece, end - first) : 0;
}

}  // namespace poseidon
