// models/net/pool_shape.hpp - the windows of a pooling layer as Caffe lays them. Without protobuf: nvcc reads it.
#pragma once
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

/// The window of a Pooling layer over [images, channels, height, width].
[[nodiscard]] pool_shape resolve_pooling(const net_layer& layer, const shape& input,
                                         const shape& output);

}  // namespace poseidon
