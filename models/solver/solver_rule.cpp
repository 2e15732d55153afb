// The words of a solver specification as a rule, and its learning rates: part of solver_file.hpp.
#include "models/solver/solver_rule.hpp"

#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace poseidon {

namespace {

constexpr std::array<std::pair<const char*, rule_kind>, 6> rules{{{"SGD", rule_kind::sgd},
                                                                  {"Nesterov", rule_kind::nesterov},
                                                                  {"AdaGrad", rule_kind::adagrad},
                                                                  {"RMSProp", rule_kind::rmsprop},
                                                                  {"AdaDelta", rule_kind::adadelta},
                                                                  {"Adam", rule_kind::adam}}};

/// The number of steps taken until now. Caffe takes at most one per iteration.
int steps_taken(const ::caffe::SolverParameter& solver, std::int64_t iteration) {
  int steps = 0;
  std::int64_t from = -1;
  for (const auto value : solver.stepvalue()) {
    from = std::max<std::int64_t>(value, from + 1);
    if (iteration >= from) ++steps;
  }
  return steps;
}

}  // namespace

std::vector<std::string> solver_types() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : rules) names.emplace_back(name);
  return names;
}

std::vector<std::string> lr_policies() {
  return {"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"};
}

std::optional<rule_kind> rule_named(const std::string& type) {
  const auto* found = std::find_if(rules.begin(), rules.end(),
                                   [&](const auto& rule) { return type == rule.first; });
  return found == rules.end() ? std::nullopt : std::optional(found->second);
}

std::string name_of(rule_kind kind) {
  return std::find_if(rules.begin(), rules.end(),
                      [&](const auto& rule) { return kind == rule.second; })
      ->first;
}

solver_rule rule_of(const ::caffe::SolverParameter& solver) {
  const auto kind = rule_named(solver.type());
  if (!kind)
    throw spec_error("type \"" + solver.type() + "\" is no solver." +
                     did_you_mean(solver.type(), solver_types()));
  solver_rule rule;
  rule.kind = *kind;
  rule.decay_norm = solver.regularization_type() == "L1" ? regularizer::l1 : regularizer::l2;
  rule.momentum = solver.momentum();
  rule.momentum2 = solver.momentum2();
  rule.rms_decay = solver.rms_decay();
  rule.delta = solver.delta();
  return rule;
}

const std::string& policy_of(const ::caffe::SolverParameter& solver) {
  const auto& ours = solver.poseidon();
  return ours.has_lr_policy() ? ours.lr_policy() : solver.lr_policy();
}

namespace {

float rate_of_policy(const ::caffe::SolverParameter& solver, std::uint64_t iteration) {
  const auto& policy = policy_of(solver);
  // In single precision where Caffe's is: near the end of poly, 1 - i / max_iter has few digits
  // left.
  const float gamma = solver.gamma(), power = solver.power(), i = static_cast<float>(iteration);
  const auto stepsize = static_cast<std::uint64_t>(std::max(1, solver.stepsize()));
  double factor = 1;
  if (policy == "fixed") {
    factor = 1;
  } else if (policy == "step") {
    factor = std::pow(double{gamma}, static_cast<double>(iteration / stepsize));
  } else if (policy == "exp") {
    factor = std::pow(double{gamma}, static_cast<double>(iteration));
  } else if (policy == "inv") {
    factor = std::pow(double{1 + gamma * i}, -double{power});
  } else if (policy == "multistep") {
    factor = std::pow(double{gamma}, steps_taken(solver, static_cast<std::int64_t>(iteration)));
  } else if (policy == "poly") {
    const float left = 1 - i / static_cast<float>(std::max(1, solver.max_iter()));
    factor = std::pow(std::max(0.0, double{left}), double{power});
  } else if (policy == "sigmoid") {
    const float past = i - static_cast<float>(solver.stepsize());
    factor = 1 / (1 + std::exp(-double{gamma} * past));
  } else if (policy == "cosine") {
    const double least = solver.poseidon().lr_min();
    const auto end = static_cast<double>(std::max(1, solver.max_iter()));
    const double done = std::min(1.0, static_cast<double>(iteration) / end);
    return static_cast<float>(least + (double{solver.base_lr()} - least) *
                                          (1 + std::cos(std::numbers::pi * done)) / 2);
  } else {
    throw spec_error("lr_policy \"" + policy + "\" is none of Caffe's." +
                     did_you_mean(policy, lr_policies()));
  }
  return static_cast<float>(solver.base_lr() * factor);
}

}  // namespace

float learning_rate(const ::caffe::SolverParameter& solver, std::uint64_t iteration) {
  const auto rate = rate_of_policy(solver, iteration);
  const auto& ours = solver.poseidon();
  if (iteration >= ours.warmup_iter()) return rate;
  const auto share = static_cast<double>(iteration + 1) / ours.warmup_iter();
  return static_cast<float>(rate * (ours.warmup_from() + (1 - ours.warmup_from()) * share));
}

std::uint64_t current_step(const ::caffe::SolverParameter& solver, std::uint64_t iteration) {
  const auto& policy = policy_of(solver);
  if (policy == "step")
    return iteration / static_cast<std::uint64_t>(std::max(1, solver.stepsize()));
  if (policy == "multistep")
    return static_cast<std::uint64_t>(steps_taken(solver, static_cast<std::int64_t>(iteration)));
  return 0;
}

rule_step step_of(const ::caffe::SolverParameter& solver, const net_parameter& p,
                  std::uint64_t iteration, float scale) {
  rule_step step;
  step.iteration = iteration;
  step.rate = learning_rate(solver, iteration) * p.lr_mult;
  step.decay = solver.weight_decay() * p.decay_mult;
  step.scale = scale;
  return step;
}

}  // namespace poseidon
