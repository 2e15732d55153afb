// cpu/layers/window_gradient.hpp - the gradient of the weights of a convolution over few channels, such as a net's first one.
#pragma once
#include "cpu/channels.hpp"
#include "cpu/convolution_shape.hpp"
#include "cpu/layer.hpp"

#include <vector>

namespace poseidon::cpu {

/// dW = dy^T X, image by image: each row of X is the window of one pixel of dy, in the order of Caffe's weights. oneDNN's kernel for this
/// gradient uses a fifth of a processor's tiles where pixels have three channels (AlexNet's conv1, batch 256, one core with AMX: 540 ms).
class window_gradient {
 public:
  /// Where the processor multiplies tiles, dy has all channels of a pixel side by side, and windows are small enough.
  [[nodiscard]] static bool suits(const convolution_shape& s);
  /// Shapes   bottom, top: of the blobs.
  window_gradient(dnnl_run& run, const convolution_shape& s, const shape& bottom, const shape& top);

  /// `x`: plain floats; `dy`: layout::pixels_bf16.  Writes   dw in Caffe's order, and db unless it is null.
  void run(const float* x, const bfloat16* dy, float* dw, float* db);

 private:
  void pad(const float* image);
  void collect_windows();

  convolution_shape shape_;
  std::size_t images_, height_, width_;                ///< of the bottom
  std::size_t rows_, columns_;                         ///< of the top
  std::size_t padded_height_, padded_width_, window_;  ///< values
  std::size_t row_;                                    ///< values from one window to the next
  buffer padded_, windows_;
  dnnl_step first_, further_;
};

}  // namespace poseidon::cpu
