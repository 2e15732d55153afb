// models/solver/outer_steps.hpp
//
// Outer steps of nets (local SGD, DiLoCo): `poseidon { outer_steps: H }`. Each node makes H iterations with parameters of its own, by
// the solver's rule; nothing travels. What the parameters of a node have moved, anchor - own, is then its gradient of one step of
// SGD on the anchor, the values with which all nodes began. A clock of the run is one outer step.
//
// Source   Douillard et al., arXiv:2311.08105 (DiLoCo); the defaults are those of docs/decisions/062-outer-steps.md.
#pragma once
#include "models/caffe.hpp"
#include "models/net/net.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace poseidon {

/// Larger numbers would not fit the 32 bits that number the passes of a clock, with any iter_size that is in use.
inline constexpr std::uint32_t most_outer_steps = 100000;

struct outer_rule {
  std::uint32_t every = 1;  ///< iterations of a node in a clock
  float rate = 1, momentum = 0;
  bool nesterov = true;
};

/// That of a solver; empty: the gradients of every iteration travel.
[[nodiscard]] std::optional<outer_rule> outer_rule_of(const ::caffe::SolverParameter& solver);

/// Iterations of one clock: 1 without outer steps.
[[nodiscard]] std::uint64_t iterations_per_clock(const ::caffe::SolverParameter& solver);
/// The first iteration of a clock.
[[nodiscard]] std::uint64_t iteration_of(const ::caffe::SolverParameter& solver,
                                         std::uint64_t clock);
/// What a solver says in iterations (max_iter, test_interval, ...) in clocks. Negative numbers count as 0.
[[nodiscard]] std::uint64_t clocks_of(const ::caffe::SolverParameter& solver, int iterations);
/// The clock that begins with an iteration.
/// Errors   spec_error with both numbers: the iteration lies within an outer step. `what` names it: "--views: iteration".
[[nodiscard]] std::uint64_t clock_at(const ::caffe::SolverParameter& solver,
                                     std::uint64_t iteration, const std::string& what);

/// The rule of the updates that nodes make together: that of the outer step, or the solver's own.
[[nodiscard]] solver_rule shared_rule_of(const ::caffe::SolverParameter& solver);
/// A solver whose rule and learning rate are those of the outer step; `solver` has one.
[[nodiscard]] ::caffe::SolverParameter solver_of_outer_steps(
    const ::caffe::SolverParameter& solver);
/// The parameter as an outer step sees it: its multipliers are for the iterations of a node.
[[nodiscard]] net_parameter in_outer_steps(net_parameter p);

/// A node's gradient of an outer step. Shapes  both of one parameter.  Writes  own = anchor - own.
void replace_by_gradient(std::span<const float> anchor, std::span<float> own);
/// A node's part of the change of a running statistic, of which outer steps take the mean. `share`: 1 / nodes.
/// Writes   own = (own - anchor) * share.
void replace_by_change(std::span<const float> anchor, float share, std::span<float> own);

/// Errors   spec_error with both values: numbers that do not fit together, and what does not go with outer steps.
void check_outer_steps(const ::caffe::SolverParameter& solver);

}  // namespace poseidon
