// gpu/kernels/solver.hpp - solver rules as kernels (models/solver/solver_arithmetic.hpp), with the bits of the CPU's.
#pragma once
#include "gpu/runtime/runtime.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstddef>

namespace poseidon::gpu {

/// n values. `before` receives a copy of the old values, unless it is null. `second` is null for rules with one array of
/// solver state.
struct updated_values {
  const float* gradient = nullptr;
  float *values = nullptr, *before = nullptr, *first = nullptr, *second = nullptr;
};

/// One solver update: writes values, before, and the solver state.
void update_values(stream& s, const solver_rule& rule, const rule_step& step, std::size_t n,
                   const updated_values& v);
/// values = momentum * values + gradient, for running statistics.
void average_values(stream& s, float momentum, std::size_t n, const updated_values& v);

}  // namespace poseidon::gpu
