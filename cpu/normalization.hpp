// cpu/normalization.hpp - what a BatchNorm and the Scale that follows it in place share, so that
// neither copies what the other has, nor reads the gradient a second time for the same sums.
#pragma once
#include "cpu/buffer.hpp"

#include <vector>

namespace poseidon::cpu {

struct scaled_normalization {
  buffer normalized;  ///< BatchNorm's values; the blob that both work in gets only Scale's
  /// From Scale's backward, by channel. The blob's diff stays that of Scale's top: BatchNorm
  /// multiplies by the factor itself.
  std::vector<float> factor;
  std::vector<double> diff_sum, diff_dot;  ///< sums of dy and of dy times the normalized value
};

}  // namespace poseidon::cpu
