// cpu/layout.hpp - how a blob's values lie in memory inside a replica, and the way from one to
// another.
#pragma once
#include "models/shape.hpp"

#include <cstddef>

namespace poseidon::cpu {

/// plain: Caffe's row-major order. c8, c16: oneDNN's nChw8c and nChw16c, channels in blocks that a
/// vector register holds; a last block that is not full is padded, and the padding is zero at all
/// times.
enum class layout { plain, c8, c16 };

[[nodiscard]] constexpr std::size_t block_of(layout form) {
  return form == layout::plain ? 1 : form == layout::c8 ? 8 : 16;
}

/// The axes of a blob as image kernels see them; missing axes are 1, those after the second are one
/// plane.
struct image_extent {
  std::size_t samples = 1, channels = 1, plane = 1;
};
[[nodiscard]] image_extent image_of(const shape& s);

/// Floats that a blob of this shape takes, padding included.
[[nodiscard]] std::size_t stored_size(const shape& s, layout form);

/// Copies all values from one layout to the other; writes zeros into padding.
void relayout(const shape& s, layout from_form, const float* from, layout to_form, float* to);

}  // namespace poseidon::cpu
