// cpu/normalization.hpp - what a BatchNorm and the Scale that follows it in place share, so that
// no value is copied between them, nor read a second time.
#pragma once
#include "cpu/buffer.hpp"

#include <vector>

namespace poseidon::cpu {

struct scaled_normalization {
  /// From BatchNorm's forward: its input, and by channel the numbers with which Scale normalizes it.
  const float* x = nullptr;
  std::vector<float> mean, scale;
  /// (x - mean) scale, which Scale writes; the blob of both gets only Scale's values.
  buffer normalized;
  /// From Scale's backward, by channel. The blob's diff stays that of Scale's top: BatchNorm
  /// multiplies by the factor itself.
  std::vector<float> factor;
  std::vector<double> diff_sum, diff_dot;  ///< sums of dy and of dy times the normalized value
};

}  // namespace poseidon::cpu
