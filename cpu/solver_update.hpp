// cpu/solver_update.hpp - sums and solver rules over chunks of parameters. Any thread, no state.
#pragma once
#include "models/device/state_array.hpp"
#include "models/device/value_checksum.hpp"
#include "models/solver/solver_rule.hpp"

#include <span>

namespace poseidon::cpu {

/// into[i] += x[i].   Errors   std::invalid_argument for different sizes; nothing is written.
void add(std::span<float> into, std::span<const float> x);

/// to[i] = factor * x[i].   Errors   as add.
void scale(float factor, std::span<const float> x, std::span<float> to);

[[nodiscard]] bool all_finite(std::span<const float> x);

/// One update of one chunk as models/solver/solver_rule.hpp says it, in one pass over memory.
/// `made`: null, or `fresh` is added to it.
///
/// Shapes   all spans of one size; `history` has history_count(rule.kind) of them.
/// Writes   fresh (which may be `values` itself) and the arrays of history after it (which may be those before it). Element i depends on elements i alone, and every operation
///          is rounded separately (no contraction), so the bits do not depend on where a parameter is cut into chunks,
///          nor on alignment.
/// Errors   std::invalid_argument naming the span, its size and the size needed; nothing is written.
/// Source   BVLC Caffe's solvers as the reference set describes them; Kingma & Ba (2015) for Adam's t.
void update(const solver_rule& rule, const rule_step& step, std::span<const float> gradient,
            std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history, value_checksum* made = nullptr);

/// fresh = momentum * values + change, for running statistics (net_parameter::average_momentum); every operation is
/// rounded separately.
/// Errors   std::invalid_argument for different sizes; nothing is written.
void update_average(float momentum, std::span<const float> change, std::span<const float> values,
                    std::span<float> fresh);

}  // namespace poseidon::cpu
