// cpu/pool_shape.hpp - one window of a pooling layer, cut at the edges of its image.
#pragma once
#include "models/net/pool_shape.hpp"

#include <algorithm>

namespace poseidon::cpu {

/// One window: the part of it that lies inside the image, and the size that AVE divides by.
struct pool_window {
  int top, bottom, left, right;  ///< rows [top, bottom), columns [left, right)
  int first_row, first_column;   ///< of the whole window; negative in the padding
  float area;  ///< of the window cut at the far padding: padding counts, overflow does not
};

[[nodiscard]] inline pool_window window_at(const pool_shape& s, int row, int column) {
  pool_window w{};
  w.first_row = row * s.stride_h - s.pad_h;
  w.first_column = column * s.stride_w - s.pad_w;
  const int end_row = std::min(w.first_row + s.kernel_h, s.height + s.pad_h);
  const int end_column = std::min(w.first_column + s.kernel_w, s.width + s.pad_w);
  w.area = static_cast<float>((end_row - w.first_row) * (end_column - w.first_column));
  w.top = std::max(w.first_row, 0);
  w.left = std::max(w.first_column, 0);
  w.bottom = std::min(end_row, s.height);
  w.right = std::min(end_column, s.width);
  return w;
}

}  // namespace poseidon::cpu
