// gpu/runtime/convolution_shape.hpp - the extents of one convolution, as the library takes them.
#pragma once
#include "gpu/runtime/layout.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace poseidon::gpu {

/// Extents of one convolution of images [batch, in, image...] with weights [out, in / groups, kernel...] to
/// [batch, out, result...]; one value per spatial axis, of which the first `axes` count. All three
/// are in `order`; NHWC, for two spatial axes, has the second axis of each last.
struct convolution_shape {
  static constexpr std::size_t most_axes = 3;
  using extents = std::array<std::int64_t, most_axes>;

  std::size_t axes = 0;
  std::int64_t batch = 0, in = 0, out = 0, groups = 1;
  layout order = layout::nchw;
  extents image{}, result{}, kernel{}, stride{}, pad{}, dilation{};

  /// Values of one sample's images, of the weights, and of one sample's results.
  [[nodiscard]] std::int64_t image_values() const { return in * area(image); }
  [[nodiscard]] std::int64_t weight_values() const { return out * (in / groups) * area(kernel); }
  [[nodiscard]] std::int64_t result_values() const { return out * area(result); }
  [[nodiscard]] std::int64_t area(const extents& e) const {
    std::int64_t product = 1;
    for (std::size_t a = 0; a < axes; ++a) product *= e[a];
    return product;
  }

  /// Extents of the other axes are 0, so equal convolutions compare equal.
  friend auto operator<=>(const convolution_shape&, const convolution_shape&) = default;
};

}  // namespace poseidon::gpu
