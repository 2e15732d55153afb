// models/net/pool_shape.hpp - the windows of a pooling layer as Caffe lays them. Without protobuf: nvcc reads it.
#pragma once
#include "models/annotations.hpp"
#include "models/shape.hpp"

#include <cstddef>

namespace poseidon {

struct net_layer;

struct pool_shape {
  int height = 0, width = 0;          ///< extents of the bottom
  int out_height = 0, out_width = 0;  ///< extents of the top, rounded up as Caffe does
  int kernel_h = 0, kernel_w = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;

  [[nodiscard]] std::size_t in_plane() const { return static_cast<std::size_t>(height) * width; }
  [[nodiscard]] std::size_t out_plane() const {
    return static_cast<std::size_t>(out_height) * out_width;
  }
};

/// One window: the part of it that lies inside the image, and the size that AVE divides by.
struct pool_window {
  int top, bottom, left, right;  ///< rows [top, bottom), columns [left, right)
  int first_row, first_column;   ///< corner of the whole window; negative in the padding
  /// Places of the window cut at the far padding: padding counts, overflow does not.
  float area;
};

[[nodiscard]] POSEIDON_HOST_DEVICE inline pool_window window_at(const pool_shape& s, int row,
                                                                int column) {
  const auto larger = [](int a, int b) { return a > b ? a : b; };
  const auto smaller = [](int a, int b) { return a < b ? a : b; };
  pool_window w{};
  w.first_row = row * s.stride_h - s.pad_h;
  w.first_column = column * s.stride_w - s.pad_w;
  const int end_row = smaller(w.first_row + s.kernel_h, s.height + s.pad_h);
  const int end_column = smaller(w.first_column + s.kernel_w, s.width + s.pad_w);
  w.area = static_cast<float>((end_row - w.first_row) * (end_column - w.first_column));
  w.top = larger(w.first_row, 0);
  w.left = larger(w.first_column, 0);
  w.bottom = smaller(end_row, s.height);
  w.right = smaller(end_column, s.width);
  return w;
}

/// The windows of a Pooling layer over [images, channels, height, width].
[[nodiscard]] pool_shape resolve_pooling(const net_layer& layer, const shape& input,
                                         const shape& output);

}  // namespace poseidon
