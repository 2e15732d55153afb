#include "models/solver/outer_steps.hpp"

#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poseidon {

namespace {

/// Up to here the mean of the parameters is the safe rule.
constexpr std::uint32_t few_iterations = 10;
constexpr float rate_of_many = 0.7f, momentum_of_many = 0.5f;

void refuse_unless(bool holds, const std::string& text) {
  if (!holds) throw spec_error(text);
}

std::string named(std::uint32_t every) {
  return "poseidon { outer_steps: " + std::to_string(every) + " }";
}

void check_numbers(const ::caffe::PoseidonParameter& ours) {
  const auto every = ours.outer_steps();
  for (const auto& [given, name] : {std::pair{ours.has_outer_rate(), "outer_rate"},
                                    {ours.has_outer_momentum(), "outer_momentum"},
                                    {ours.has_outer_nesterov(), "outer_nesterov"}})
    refuse_unless(every > 0 || !given,
                  std::string(name) +
                      " is given without outer_steps, the number of iterations that "
                      "a node makes by itself.");
  refuse_unless(every <= most_outer_steps, "outer_steps is " + std::to_string(every) +
                                               ", it can be at most " +
                                               std::to_string(most_outer_steps) + ".");
  refuse_unless(
      !ours.has_outer_rate() || (ours.outer_rate() > 0 && std::isfinite(ours.outer_rate())),
      "outer_rate is " + plain_number(ours.outer_rate()) + ", it must be a finite number above 0.");
  refuse_unless(
      !ours.has_outer_momentum() || (ours.outer_momentum() >= 0 && ours.outer_momentum() < 1),
      "outer_momentum is " + plain_number(ours.outer_momentum()) +
          ", it must be at least 0 and below 1.");
}

/// Tests, snapshots and the end are of what all nodes have, and so fall on an outer step.
void check_boundaries(const ::caffe::SolverParameter& solver) {
  const auto every = solver.poseidon().outer_steps();
  for (const auto& [field, value] : {std::pair{"max_iter", solver.max_iter()},
                                     {"test_interval", solver.test_interval()},
                                     {"snapshot", solver.snapshot()}}) {
    if (value <= 0 || static_cast<std::uint32_t>(value) % every == 0) continue;
    const auto below = static_cast<std::uint32_t>(value) / every * every;
    throw spec_error(std::string(field) + " is " + std::to_string(value) +
                     ", which is no multiple of outer_steps, " + std::to_string(every) +
                     ": between two outer steps each node has parameters of its own. Choose " +
                     (below > 0 ? std::to_string(below) + " or " : "") +
                     std::to_string(below + every) + ", or other outer_steps.");
  }
}

}  // namespace

std::optional<outer_rule> outer_rule_of(const ::caffe::SolverParameter& solver) {
  const auto& ours = solver.poseidon();
  if (ours.outer_steps() == 0) return std::nullopt;
  const bool few = ours.outer_steps() <= few_iterations;
  outer_rule rule;
  rule.every = ours.outer_steps();
  rule.rate = ours.has_outer_rate() ? ours.outer_rate() : few ? 1.0f : rate_of_many;
  rule.momentum = ours.has_outer_momentum() ? ours.outer_momentum() : few ? 0.0f : momentum_of_many;
  rule.nesterov = ours.outer_nesterov();
  return rule;
}

std::uint64_t iterations_per_clock(const ::caffe::SolverParameter& solver) {
  return std::max<std::uint64_t>(1, solver.poseidon().outer_steps());
}

std::uint64_t iteration_of(const ::caffe::SolverParameter& solver, std::uint64_t clock) {
  return clock * iterations_per_clock(solver);
}

std::uint64_t clocks_of(const ::caffe::SolverParameter& solver, int iterations) {
  return static_cast<std::uint64_t>(std::max(0, iterations)) / iterations_per_clock(solver);
}

std::uint64_t clock_at(const ::caffe::SolverParameter& solver, std::uint64_t iteration,
                       const std::string& what) {
  const auto every = iterations_per_clock(solver);
  refuse_unless(iteration % every == 0,
                what + " " + std::to_string(iteration) + " lies within an outer step of " +
                    std::to_string(every) +
                    " iterations (outer_steps). It must be a multiple of them.");
  return iteration / every;
}

solver_rule shared_rule_of(const ::caffe::SolverParameter& solver) {
  return rule_of(outer_rule_of(solver) ? solver_of_outer_steps(solver) : solver);
}

::caffe::SolverParameter solver_of_outer_steps(const ::caffe::SolverParameter& solver) {
  const auto rule = outer_rule_of(solver).value();
  auto outer = solver;
  outer.set_type(rule.nesterov && rule.momentum > 0 ? "Nesterov" : "SGD");
  outer.set_base_lr(rule.rate);
  outer.set_lr_policy("fixed");
  outer.set_momentum(rule.momentum);
  outer.set_weight_decay(0);
  outer.mutable_poseidon()->clear_lr_policy();
  outer.mutable_poseidon()->clear_warmup_iter();
  return outer;
}

net_parameter in_outer_steps(net_parameter p) {
  if (is_learned(p)) p.lr_mult = 1;
  p.decay_mult = 0;
  return p;
}

void replace_by_gradient(std::span<const float> anchor, std::span<float> own) {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = anchor[i] - own[i];
}

void replace_by_change(std::span<const float> anchor, float share, std::span<float> own) {
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = (own[i] - anchor[i]) * share;
}

void check_outer_steps(const ::caffe::SolverParameter& solver) {
  const auto& ours = solver.poseidon();
  check_numbers(ours);
  const auto every = ours.outer_steps();
  if (every == 0) return;
  check_boundaries(solver);
  const auto refuse = [&](bool given, const std::string& other, const std::string& why) {
    refuse_unless(!given, named(every) + " does not go with " + other + ": " + why);
  };
  refuse(ours.staleness() > 0, "staleness, which is " + std::to_string(ours.staleness()),
         "all nodes begin each outer step with the same values. Leave one of the two out.");
  refuse(solver.clip_gradients() >= 0,
         "clip_gradients, which is " + plain_number(solver.clip_gradients()),
         "a node would need the norm of its own gradients over all layers before its first update. "
         "Leave one of the two out.");
  refuse(solver.debug_info(), "debug_info",
         "it shows each iteration's parameters, which are a node's own. Leave one of the two out.");
  refuse(ours.global_batch() > 0, "--global-batch keep",
         "samples of an iteration are then those of one node.");
  refuse(ours.has_replay(), "--devices replay",
         "a replayed node computes no parameters of its own.");
}

}  // namespace poseidon
