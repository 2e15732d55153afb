// cpu/winograd_weights.hpp - Caffe's weights to their values at the points, and gradients back.
#pragma once
#include "cpu/winograd_tiles.hpp"

namespace poseidon::cpu::winograd {

/// Where one weight of Caffe's [out, in, 5, 5] lies, seen as a matrix [rows, columns] of windows.
struct weight_order {
  std::size_t rows, columns, row_step, column_step;
  bool turned;  ///< by 180 degrees
};
inline weight_order forward_order(const winograd_shape& s) {
  return {s.in.channels, s.out.channels, all_taps, s.in.channels * all_taps, false};
}
inline weight_order backward_order(const winograd_shape& s) {
  return {s.out.channels, s.in.channels, s.in.channels * all_taps, all_taps, true};
}

/// Writes   weights_of(o.rows, o.columns).
void spread_weights(const weight_order& o, const float* weights, float* to);
/// The gradient of every weight from those of weights_of(o.rows, o.columns).
void gather_gradient(const weight_order& o, const float* from, float* gradient);

}  // namespace poseidon::cpu::winograd
