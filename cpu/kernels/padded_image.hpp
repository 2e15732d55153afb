// cpu/kernels/padded_image.hpp - one image as sparse convolution reads it: channels innermost, the padding
// around it.
#pragma once
#include "cpu/layout.hpp"

#include <cstddef>

namespace poseidon::cpu {

/// A row of a convolution's window is contiguous here: kernel_w pixels of all channels.
struct padded_image {
  std::size_t height, width, channels, pad_h, pad_w;

  [[nodiscard]] std::size_t row_step() const { return (width + 2 * pad_w) * channels; }
  [[nodiscard]] std::size_t size() const { return (height + 2 * pad_h) * row_step(); }
  [[nodiscard]] std::size_t at(std::size_t row, std::size_t column) const {
    return (row + pad_h) * row_step() + (column + pad_w) * channels;
  }

  /// Fills `to` (whose padding is and stays zero) from one image in layout `form`.
  void pack(layout form, const float* from, float* to) const;
  /// The way back, for a diff; writes zeros into a blocked layout's channel padding.
  void unpack(layout form, const float* from, float* to) const;
};

}  // namespace poseidon::cpu
