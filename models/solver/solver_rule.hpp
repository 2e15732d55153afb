// models/solver/solver_rule.hpp
//
// The update of a chunk of parameters after a clock's gradients have been summed: Caffe's solver rules in
// Caffe's order (divide, regularise, rule). A device does the arithmetic.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace poseidon {

enum class rule_kind { sgd, nesterov, adagrad, rmsprop, adadelta, adam };
enum class regularizer { l2, l1 };

/// Fixed for a whole run.
struct solver_rule {
  rule_kind kind = rule_kind::sgd;
  regularizer decay_norm = regularizer::l2;
  float momentum = 0;   ///< also AdaDelta's mu and Adam's beta1
  float momentum2 = 0;  ///< Adam's beta2
  float rms_decay = 0;
  float delta = 0;
};

/// One update of one chunk:
///   g = gradient * scale;  g += decay * (w, or sign(w));  w' = rule(w, g, history)
struct rule_step {
  std::uint64_t iteration = 0;  ///< from 0; Adam's t is iteration + 1
  float rate = 0;               ///< learning rate of the iteration times lr_mult
  float decay = 0;              ///< weight_decay times decay_mult
  float scale = 1;  ///< 1 / number of micro-batches summed in the gradient, over all workers
};

/// Arrays of solver state per parameter: 1, or 2 for AdaDelta and Adam.
[[nodiscard]] constexpr std::size_t history_count(rule_kind kind) {
  return kind == rule_kind::adadelta || kind == rule_kind::adam ? 2 : 1;
}

/// Whether an array of state holds sums or means of squares.
[[nodiscard]] constexpr bool holds_squares(rule_kind kind, std::size_t slot) {
  switch (kind) {
    case rule_kind::sgd:
    case rule_kind::nesterov:
      return false;
    case rule_kind::adagrad:
    case rule_kind::rmsprop:
    case rule_kind::adadelta:
      return true;
    case rule_kind::adam:
      return slot == 1;
  }
  return false;
}

/// Whether one rule can go on with the other's state. Nesterov's momentum is SGD's; it is only applied in another way.
[[nodiscard]] constexpr bool have_one_state(rule_kind a, rule_kind b) {
  const auto is_momentum = [](rule_kind k) {
    return k == rule_kind::sgd || k == rule_kind::nesterov;
  };
  return a == b || (is_momentum(a) && is_momentum(b));
}

/// The factor of a running statistic's old value after `passes` passes, see net_parameter::average_momentum.
[[nodiscard]] inline float momentum_over(float momentum, std::uint64_t passes) {
  return static_cast<float>(std::pow(double{momentum}, static_cast<double>(passes)));
}

}  // namespace poseidon
