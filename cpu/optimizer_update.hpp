// cpu/optimizer_update.hpp - the steps of PyTorch's optimizers, with the bits of its kernels for processors with AVX2.
#pragma once
#include "models/device/state_array.hpp"
#include "models/optimizer_rule.hpp"

#include <span>

namespace poseidon::cpu {

/// One step of one chunk: g = scale * gradient, then the rule.
///
/// Shapes   all spans of one size; `history` has history_count(rule) of them.
/// Writes   fresh (which may be `values` itself) and the arrays of history after it (which may be those before it). Element i depends on elements i alone.
/// Errors   std::invalid_argument naming the span, its size and the size needed, or for the rule `none`; nothing is written.
/// Source   the documented formulas of torch.optim; where PyTorch's kernels round once for a product and a sum (add_ with alpha,
///          addcmul_) this does, too.
void update(optimizer_rule rule, const optimizer_step& step, float scale,
            std::span<const float> gradient, std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history);

}  // namespace poseidon::cpu
