// models/net/pyramid.hpp - the windows of SPP, spatial pyramid pooling: level l cuts an image into about
// 2^l x 2^l bins.
#pragma once
#include "models/shape.hpp"

#include <cstdint>

namespace poseidon {

/// One axis of one level: windows of `kernel` that do not overlap, `pad` zeros before the image.
struct pyramid_axis {
  std::int64_t kernel = 1, pad = 0, out = 1;
};

/// Caffe's arithmetic: all bins have one size, and padding at both ends fills what is missing; a last bin that
/// would begin in the padding is dropped, so there may be fewer than 2^level bins.
[[nodiscard]] constexpr pyramid_axis pyramid_axis_of(std::int64_t in, std::int64_t level) {
  const std::int64_t bins = std::int64_t{1} << level;
  pyramid_axis a;
  a.kernel = (in + bins - 1) / bins;
  a.pad = (a.kernel * bins - in + 1) / 2;
  a.out = (in + 2 * a.pad - a.kernel + a.kernel - 1) / a.kernel + 1;
  if (a.pad > 0 && (a.out - 1) * a.kernel >= in + a.pad) --a.out;
  return a;
}

}  // namespace poseidon
