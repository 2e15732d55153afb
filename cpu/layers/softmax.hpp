// cpu/layers/softmax.hpp - softmax along one axis. Any thread, no state.
#pragma once
#include "cpu/axis.hpp"

namespace poseidon::cpu {

/// Shapes   x, y [outer, size, inner]; y may be x.   Writes   y, which sums to 1 along the middle
/// axis.
void softmax_forward(const along_axis& a, const float* x, float* y);

}  // namespace poseidon::cpu
