// cpu/normalization.hpp - what a BatchNorm and the Scale that follows it in place share, so that
// neither copies what the other has, nor reads values or gradients a second time.
#pragma once
#include "cpu/buffer.hpp"

#include <vector>

namespace poseidon::cpu {

struct scaled_normalization {
  /// From BatchNorm's forward: its input, and by channel what Scale normalizes it with.
  const float* x = nullptr;
  std::vector<float> mean, scale;
  /// (x - mean) scale, which Scale writes; the blob that both work in gets only Scale's values.
  buffer normalized;
  /// From Scale's backward, by channel. The blob's diff stays that of Scale's top: BatchNorm
  /// multiplies by the factor itself.
  std::vector<float> factor;
  std::vector<double> diff_sum, diff_dot;  ///< sums of dy and of dy times the normalized value
};

}  // namespace poseidon::cpu
