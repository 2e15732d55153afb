// models/solver/goals.hpp - what a run wants its tests to find: the words of `poseidon { keep_best, stop_at }`.
#pragma once
#include "models/caffe.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace poseidon {

/// Which values of a test net's output are good ones.
enum class better { by_kind, less, more };  ///< by_kind: less of a loss, more of anything else

struct output_goal {
  std::string output;
  better than = better::by_kind;
  double value = 0;  ///< of stop_at
};

/// "accuracy", "error=min" or "gain=max".
/// Errors   spec_error.
[[nodiscard]] output_goal parse_keep_best(std::string_view text);

/// "accuracy=0.99", "accuracy>=0.99" or "loss<=0.1".
/// Errors   spec_error.
[[nodiscard]] output_goal parse_stop_at(std::string_view text);

/// Those of a solver; empty: it has none.
[[nodiscard]] std::optional<output_goal> keep_best_of(const ::caffe::SolverParameter& solver);
[[nodiscard]] std::optional<output_goal> stop_at_of(const ::caffe::SolverParameter& solver);

/// Errors   spec_error: a goal that cannot be read, or one in a solver without test phases.
void check_goals(const ::caffe::SolverParameter& solver);

}  // namespace poseidon
