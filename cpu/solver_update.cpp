#include "cpu/solver_update.hpp"

#include <bit>
#include <cmath>
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

struct arrays {
  std::size_t size;
  const float* gradient;
  const float* values;
  float* fresh;
  float* first;
  float* second;
};

/// The loop that all rules share: scale, regularise, then rule(g, h1) or rule(g, h1, h2) -> what to
/// take from w. Without h2 `second` is null and not looked at.
template <bool L1, class Rule>
void for_each(const arrays& a, const rule_step& step, Rule rule) {
  constexpr bool two_histories = std::is_invocable_v<Rule, float, float&, float&>;
  const float scale = step.scale;
  const float decay = step.decay;
#pragma GCC ivdep
  for (std::size_t i = 0; i < a.size; ++i) {
    const float w = a.values[i];
    float g = a.gradient[i] * scale;
    if constexpr (L1) {
      g += decay * (w > 0 ? 1.0f : w < 0 ? -1.0f : 0.0f);
    } else {
      g += decay * w;
    }
    if constexpr (two_histories) {
      a.fresh[i] = w - rule(g, a.first[i], a.second[i]);
    } else {
      a.fresh[i] = w - rule(g, a.first[i]);
    }
  }
}

template <bool L1>
void apply(const solver_rule& rule, const rule_step& step, const arrays& a) {
  const float rate = step.rate;
  const float mu = rule.momentum;
  const float delta = rule.delta;
  switch (rule.kind) {
    case rule_kind::sgd:
      return for_each<L1>(a, step, [=](float g, float& h) { return h = rate * g + mu * h; });
    case rule_kind::nesterov:
      return for_each<L1>(a, step, [=](float g, float& h) {
        const float before = h;
        h = rate * g + mu * before;
        return (1.0f + mu) * h - mu * before;
      });
    case rule_kind::adagrad:
      return for_each<L1>(a, step, [=](float g, float& h) {
        h = g * g + h;
        return rate * (g / (std::sqrt(h) + delta));
      });
    case rule_kind::rmsprop: {
      const float keep = rule.rms_decay;
      return for_each<L1>(a, step, [=](float g, float& h) {
        h = (1.0f - keep) * (g * g) + keep * h;
        return rate * (g / (std::sqrt(h) + delta));
      });
    }
    case rule_kind::adadelta:
      return for_each<L1>(a, step, [=](float g, float& squares, float& updates) {
        squares = (1.0f - mu) * (g * g) + mu * squares;
        const float u = g * std::sqrt((updates + delta) / (squares + delta));
        updates = (1.0f - mu) * (u * u) + mu * updates;
        return rate * u;
      });
    case rule_kind::adam: {
      const float nu = rule.momentum2;
      const double t = static_cast<double>(step.iteration) + 1;
      const auto correction = static_cast<float>(std::sqrt(1 - std::pow(double{nu}, t)) /
                                                 (1 - std::pow(double{mu}, t)));
      const float corrected = rate * correction;
      return for_each<L1>(a, step, [=](float g, float& m, float& v) {
        m = (1.0f - mu) * g + mu * m;
        v = (1.0f - nu) * (g * g) + nu * v;
        return corrected * (m / (std::sqrt(v) + delta));
      });
    }
  }
  throw std::invalid_argument("update: unknown solver rule");
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
            std::span<const std::span<float>> history) {
  require_size("values", values.size(), gradient.size());
  require_size("fresh", fresh.size(), gradient.size());
  const std::size_t slots = history_count(rule.kind);
  if (history.size() != slots) {
    throw std::invalid_argument("update: the rule keeps " + std::to_string(slots) +
                                " history arrays, it was given " + std::to_string(history.size()));
  }
  for (const std::span<float>& h : history) require_size("history", h.size(), gradient.size());
  const arrays a{gradient.size(), gradient.data(),   values.data(),
                 fresh.data(),    history[0].data(), slots == 2 ? history[1].data() : nullptr};
  rule.decay_norm == regularizer::l1 ? apply<true>(rule, step, a) : apply<false>(rule, step, a);
}

void keep(float keeps, std::span<const float> change, std::span<const float> values,
          std::span<float> fresh) {
  if (change.size() != fresh.size() || values.size() != fresh.size()) {
    throw std::invalid_argument("a statistic of " + std::to_string(fresh.size()) +
                                " values was given " + std::to_string(values.size()) +
                                " values and a change of " + std::to_string(change.size()));
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i] = keeps * values[i] + change[i];
}

}  // namespace poseidon::cpu
