// models/solver/update_choice.hpp - who makes a new version of the parameters of a sum of gradients, and how.
#pragma once
#include "models/optimizer_rule.hpp"
#include "models/solver/solver_rule.hpp"

#include <cstddef>
#include <variant>

namespace poseidon {

/// One of three: the rule of a solver file; the rule of a program's own optimizer; or none, because the program makes its updates itself
/// and wants the mean.
class update_choice {
 public:
  update_choice() = default;  ///< the mean
  update_choice(solver_rule rule) : is_(rule) {}
  update_choice(optimizer_rule rule) : is_(rule) {}  ///< optimizer_rule::none: the mean

  /// Null: no solver file has a rule for it.
  [[nodiscard]] const solver_rule* solver() const { return std::get_if<solver_rule>(&is_); }
  /// none: it is the mean, or a solver's.
  [[nodiscard]] optimizer_rule optimizer() const {
    const auto* const rule = std::get_if<optimizer_rule>(&is_);
    return rule != nullptr ? *rule : optimizer_rule::none;
  }
  [[nodiscard]] bool is_mean() const {
    return solver() == nullptr && optimizer() == optimizer_rule::none;
  }
  /// Arrays of state, each of a parameter's size.
  [[nodiscard]] std::size_t arrays() const {
    return solver() != nullptr ? history_count(solver()->kind) : history_count(optimizer());
  }

 private:
  std::variant<optimizer_rule, solver_rule> is_ = optimizer_rule::none;
};

}  // namespace poseidon
