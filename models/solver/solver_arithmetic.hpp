// models/solver/solver_arithmetic.hpp
//
// The formulas of Caffe's solver rules for one value, the same for CPUs and GPUs. Every operation is rounded separately:
// sources that include this header are compiled without contraction (-ffp-contract=off, -fmad=false), so that all devices
// give the same bits, wherever a parameter is cut.
// Source   BVLC Caffe's solvers as the reference set describes them; Kingma & Ba (2015) for Adam's t.
#pragma once
#include "models/annotations.hpp"
#include "models/solver/solver_rule.hpp"

#include <cmath>
#include <stdexcept>

namespace poseidon::rules {

/// A rule's arguments: g, the gradient after scale and decay, and its arrays of solver state, which it writes. The rule
/// returns the number that is subtracted from the value.
struct sgd {
  float rate, mu;
  POSEIDON_HOST_DEVICE float operator()(float g, float& h) const { return h = rate * g + mu * h; }
};

struct nesterov {
  float rate, mu;
  POSEIDON_HOST_DEVICE float operator()(float g, float& h) const {
    const float before = h;
    h = rate * g + mu * before;
    return (1.0f + mu) * h - mu * before;
  }
};

struct adagrad {
  float rate, delta;
  POSEIDON_HOST_DEVICE float operator()(float g, float& h) const {
    h = g * g + h;
    return rate * (g / (std::sqrt(h) + delta));
  }
};

struct rmsprop {
  float rate, keep, delta;
  POSEIDON_HOST_DEVICE float operator()(float g, float& h) const {
    h = (1.0f - keep) * (g * g) + keep * h;
    return rate * (g / (std::sqrt(h) + delta));
  }
};

struct adadelta {
  float rate, mu, delta;
  POSEIDON_HOST_DEVICE float operator()(float g, float& squares, float& updates) const {
    squares = (1.0f - mu) * (g * g) + mu * squares;
    const float u = g * std::sqrt((updates + delta) / (squares + delta));
    updates = (1.0f - mu) * (u * u) + mu * updates;
    return rate * u;
  }
};

struct adam {
  float corrected, mu, nu, delta;
  POSEIDON_HOST_DEVICE float operator()(float g, float& m, float& v) const {
    m = (1.0f - mu) * g + mu * m;
    v = (1.0f - nu) * (g * g) + nu * v;
    return corrected * (m / (std::sqrt(v) + delta));
  }
};

/// g of one value: the gradient divided by the number of passes summed in it, then regularised.
template <bool L1>
POSEIDON_HOST_DEVICE inline float regularised(float gradient, float value, float scale,
                                              float decay) {
  const float g = gradient * scale;
  if constexpr (L1) return g + decay * (value > 0 ? 1.0f : value < 0 ? -1.0f : 0.0f);
  return g + decay * value;
}

/// Calls `f` with the rule's formula: one of those above.
/// Errors   std::invalid_argument for a rule that is none of them.
template <class F>
void with_formula(const solver_rule& rule, const rule_step& step, F&& f) {
  const float rate = step.rate, mu = rule.momentum, delta = rule.delta;
  switch (rule.kind) {
    case rule_kind::sgd:
      return f(sgd{rate, mu});
    case rule_kind::nesterov:
      return f(nesterov{rate, mu});
    case rule_kind::adagrad:
      return f(adagrad{rate, delta});
    case rule_kind::rmsprop:
      return f(rmsprop{rate, rule.rms_decay, delta});
    case rule_kind::adadelta:
      return f(adadelta{rate, mu, delta});
    case rule_kind::adam: {
      const double t = static_cast<double>(step.iteration) + 1;
      const auto correction = static_cast<float>(
          std::sqrt(1 - std::pow(double{rule.momentum2}, t)) / (1 - std::pow(double{mu}, t)));
      return f(adam{rate * correction, mu, rule.momentum2, delta});
    }
  }
  throw std::invalid_argument("update: unknown solver rule");
}

}  // namespace poseidon::rules
