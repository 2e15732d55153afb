// tests/reference/solver_rules.hpp - Caffe's solver rules for one value, in double precision.
#pragma once
#include "models/solver/solver_rule.hpp"

#include <cmath>

namespace poseidon::reference {

struct solved {
  double w, h1, h2;
};

inline solved update(const solver_rule& r, const rule_step& s, double gradient, double w, double h1,
                     double h2) {
  double g = gradient * s.scale;
  g += s.decay * (r.decay_norm == regularizer::l2 ? w : static_cast<double>((w > 0) - (w < 0)));
  const double mu = r.momentum;
  switch (r.kind) {
    case rule_kind::sgd:
      h1 = mu * h1 + s.rate * g;
      return {w - h1, h1, h2};
    case rule_kind::nesterov: {
      const double before = h1;
      h1 = mu * h1 + s.rate * g;
      return {w - ((1 + mu) * h1 - mu * before), h1, h2};
    }
    case rule_kind::adagrad:
      h1 += g * g;
      return {w - s.rate * g / (std::sqrt(h1) + r.delta), h1, h2};
    case rule_kind::rmsprop:
      h1 = r.rms_decay * h1 + (1 - r.rms_decay) * g * g;
      return {w - s.rate * g / (std::sqrt(h1) + r.delta), h1, h2};
    case rule_kind::adadelta: {
      h1 = mu * h1 + (1 - mu) * g * g;
      const double u = g * std::sqrt((h2 + r.delta) / (h1 + r.delta));
      h2 = mu * h2 + (1 - mu) * u * u;
      return {w - s.rate * u, h1, h2};
    }
    case rule_kind::adam: {
      const double nu = r.momentum2, t = static_cast<double>(s.iteration) + 1;
      h1 = mu * h1 + (1 - mu) * g;
      h2 = nu * h2 + (1 - nu) * g * g;
      const double correction = std::sqrt(1 - std::pow(nu, t)) / (1 - std::pow(mu, t));
      return {w - s.rate * correction * h1 / (std::sqrt(h2) + r.delta), h1, h2};
    }
  }
  return {w, h1, h2};
}

}  // namespace poseidon::reference
