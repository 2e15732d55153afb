#include "cpu/solver_update.hpp"

#include "models/solver/solver_arithmetic.hpp"

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace poseidon::cpu {
namespace {

void require_size(const char* what, std::size_t has, std::size_t needs) {
  if (has == needs) return;
  throw std::invalid_argument("update: " + std::string(what) + " has " + std::to_string(has) +
                              " values, the gradient has " + std::to_string(needs));
}

struct state {
  const float* before = nullptr;
  float* after = nullptr;
};

/// Without a second array of solver state `second` is not looked at.
struct arrays {
  std::size_t size;
  const float* gradient;
  const float* values;
  float* fresh;
  state first, second;
};

state pointers_to(const state_array& a) {
  return {a.before.data(), a.after.data()};
}

template <bool L1, class Formula>
void for_each(const arrays& a, const rule_step& step, const Formula& formula) {
  const float scale = step.scale;
  const float decay = step.decay;
#pragma GCC ivdep
  for (std::size_t i = 0; i < a.size; ++i) {
    const float w = a.values[i];
    const float g = rules::regularised<L1>(a.gradient[i], w, scale, decay);
    float first = a.first.before[i];
    if constexpr (std::is_invocable_v<Formula, float, float&, float&>) {
      float second = a.second.before[i];
      a.fresh[i] = w - formula(g, first, second);
      a.second.after[i] = second;
    } else {
      a.fresh[i] = w - formula(g, first);
    }
    a.first.after[i] = first;
  }
}

}  // namespace

void add(std::span<float> into, std::span<const float> x) {
  if (into.size() != x.size()) {
    throw std::invalid_argument("add: " + std::to_string(x.size()) + " values into " +
                                std::to_string(into.size()));
  }
  float* to = into.data();
  const float* from = x.data();
#pragma GCC ivdep
  for (std::size_t i = 0; i < into.size(); ++i) to[i] += from[i];
}

void scale(float factor, std::span<const float> x, std::span<float> to) {
  if (to.size() != x.size()) {
    throw std::invalid_argument("scale: " + std::to_string(x.size()) + " values into " +
                                std::to_string(to.size()));
  }
  const float* from = x.data();
  float* into = to.data();
#pragma GCC ivdep
  for (std::size_t i = 0; i < to.size(); ++i) into[i] = factor * from[i];
}

bool all_finite(std::span<const float> x) {
  // An infinity or a NaN has all bits of its exponent set; integers vectorise without -ffast-math.
  std::uint32_t found = 0;
  for (const float v : x) {
    found |= (std::bit_cast<std::uint32_t>(v) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return found == 0;
}

void update(const solver_rule& rule, const rule_step& step, std::span<const float> gradient,
            std::span<const float> values, std::span<float> fresh,
            std::span<const state_array> history) {
  require_size("values", values.size(), gradient.size());
  require_size("fresh", fresh.size(), gradient.size());
  const std::size_t slots = history_count(rule.kind);
  if (history.size() != slots) {
    throw std::invalid_argument("update: the rule keeps " + std::to_string(slots) +
                                " history arrays, it was given " + std::to_string(history.size()));
  }
  for (const auto& h : history) {
    require_size("history", h.before.size(), gradient.size());
    require_size("history", h.after.size(), gradient.size());
  }
  const arrays a{gradient.size(),         gradient.data(),
                 values.data(),           fresh.data(),
                 pointers_to(history[0]), slots == 2 ? pointers_to(history[1]) : state{}};
  rules::with_formula(rule, step, [&](const auto& formula) {
    rule.decay_norm == regularizer::l1 ? for_each<true>(a, step, formula)
                                       : for_each<false>(a, step, formula);
  });
}

void update_average(float momentum, std::span<const float> change, std::span<const float> values,
                    std::span<float> fresh) {
  if (change.size() != fresh.size() || values.size() != fresh.size()) {
    throw std::invalid_argument("a statistic of " + std::to_string(fresh.size()) +
                                " values was given " + std::to_string(values.size()) +
                                " values and a change of " + std::to_string(change.size()));
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i] = momentum * values[i] + change[i];
}

}  // namespace poseidon::cpu
