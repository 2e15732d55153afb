#include "gpu/kernels/solver.hpp"
#include "gpu/runtime/launch.hpp"
#include "models/solver/solver_arithmetic.hpp"

#include <type_traits>

namespace poseidon::gpu {
namespace {

/// All that one launch needs; a named function object, since lambdas in templates are nvcc's weak spot.
template <bool L1, class Formula>
struct update_one {
  Formula formula;
  updated_values v;
  float scale, decay;

  POSEIDON_HOST_DEVICE void operator()(index i) const {
    const float w = v.values[i];
    const float g = rules::regularised<L1>(v.gradient[i], w, scale, decay);
    if (v.before != nullptr) v.before[i] = w;
    if constexpr (std::is_invocable_v<Formula, float, float&, float&>)
      v.values[i] = w - formula(g, v.first[i], v.second[i]);
    else
      v.values[i] = w - formula(g, v.first[i]);
  }
};

}  // namespace

void update_values(stream& s, const solver_rule& rule, const rule_step& step, std::size_t n,
                   const updated_values& v) {
  rules::with_formula(rule, step, [&](const auto& formula) {
    using formula_type = std::decay_t<decltype(formula)>;
    if (rule.decay_norm == regularizer::l1)
      for_each(s, n, update_one<true, formula_type>{formula, v, step.scale, step.decay});
    else
      for_each(s, n, update_one<false, formula_type>{formula, v, step.scale, step.decay});
  });
}

void average_values(stream& s, float momentum, std::size_t n, const updated_values& v) {
  const updated_values of = v;
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    const float w = of.values[i];
    if (of.before != nullptr) of.before[i] = w;
    of.values[i] = momentum * w + of.gradient[i];
  });
}

}  // namespace poseidon::gpu
