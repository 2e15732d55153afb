// models/optimizer_rule.hpp
//
// The update of a chunk of a program's parameters by the rule of the program's own optimizer, which says its hyperparameters anew
// in every clock. A rule of a solver specification is a solver_rule (models/solver/solver_rule.hpp): Caffe's momentum holds the learning rate,
// PyTorch's does not, so neither can stand for the other.
#pragma once
#include "models/value_format.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace poseidon {

/// `none`: a version is the mean gradient, and the program makes the updates.
enum class optimizer_rule : std::uint8_t { none, sgd, adam, adamw };
inline constexpr std::uint8_t optimizer_rules = 4;

/// "SGD", "Adam", "AdamW"; "none".
[[nodiscard]] std::string_view name_of(optimizer_rule rule);

/// Arrays of state, each of a parameter's size: SGD's momentum; Adam's first and second moments.
[[nodiscard]] constexpr std::size_t history_count(optimizer_rule rule) {
  switch (rule) {
    case optimizer_rule::none:
      return 0;
    case optimizer_rule::sgd:
      return 1;
    case optimizer_rule::adam:
    case optimizer_rule::adamw:
      return 2;
  }
  return 0;
}

/// One step of one parameter. As PyTorch, a device forms constants in double and rounds them once.
struct optimizer_step {
  double rate = 0;
  double weight_decay = 0;
  double momentum = 0;   ///< Adam: beta1
  double dampening = 0;  ///< SGD
  double beta2 = 0;      ///< Adam
  double epsilon = 0;    ///< Adam
  bool nesterov = false;
  bool lerp = false;       ///< Adam's first moment as PyTorch rounds it from 2.1 on
  std::uint64_t rest = 0;  ///< a digest of what else the program says of it: only compared
  /// Of the parameter's own steps, from 1; clocks without a gradient do not count.
  std::uint64_t number = 1;

  friend bool operator==(const optimizer_step&, const optimizer_step&) = default;
};

/// What of a step travels beside a gradient, so that the shard that adds them sees whether all workers make the same step, with
/// gradients that are rounded alike.
struct step_mark {
  double rate = 0;
  std::uint32_t digest = 0;  ///< of the whole step; 0: the program has told none
  /// Of the program's gradients in this clock, where their means go back to the programs; else float32, whatever the view says.
  wire_format wire = wire_format::float32;

  friend bool operator==(const step_mark&, const step_mark&) = default;
};

[[nodiscard]] step_mark mark_of(const optimizer_step& step);
/// Without a step: the empty mark.
[[nodiscard]] step_mark mark_of(const std::optional<optimizer_step>& step);

/// Two workers' marks of one clock, as one line for their users; they are not the same.
[[nodiscard]] std::string difference_of_steps(std::string_view parameter, std::uint64_t clock,
                                              std::uint32_t worker, const step_mark& mark,
                                              std::uint32_t other, const step_mark& of_other);

}  // namespace poseidon
