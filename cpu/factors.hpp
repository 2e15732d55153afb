// cpu/factors.hpp - the gradient of an inner product from its sufficient factors.
#pragma once
#include "models/device/factors.hpp"

#include <span>

namespace poseidon::cpu {

/// Shapes   u [rows, outputs], v [rows, inputs], weights as `shape` says, bias [outputs] or empty.
/// Writes   weights and bias, never adds. Sums go over the rows in order, so the same rows give the same bits
///          in a thread of the same number of OpenMP threads on the same kind of processor.
/// Cost     2 * rows * outputs * inputs flop, in the calling thread's team.
/// Errors   std::invalid_argument naming the span, its size and the size needed; nothing is written.
/// Source   Xie et al., arXiv:1512.06216, section 5 (sufficient factor broadcasting).
void reconstruct_gradient(const factor_shape& shape, std::span<const float> u,
                          std::span<const float> v, std::span<float> weights,
                          std::span<float> bias);

}  // namespace poseidon::cpu
