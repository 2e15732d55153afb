#include "models/solver/goals.hpp"

#include "models/spec/spec_file.hpp"

#include <charconv>
#include <cmath>

namespace poseidon {

namespace {

std::string in_quotes(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

double number_in(std::string_view goal, std::string_view text) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !std::isfinite(value))
    throw spec_error("stop_at " + in_quotes(goal) + ": " + in_quotes(text) +
                     " is no number. Write OUTPUT=VALUE, as in accuracy=0.99.");
  return value;
}

}  // namespace

output_goal parse_keep_best(std::string_view text) {
  const auto equals = text.rfind('=');
  output_goal goal{std::string(text.substr(0, equals))};
  const auto word = equals == text.npos ? std::string_view{} : text.substr(equals + 1);
  if (word == "min")
    goal.than = better::less;
  else if (word == "max")
    goal.than = better::more;
  if (goal.output.empty() || (equals != text.npos && goal.than == better::by_kind))
    throw spec_error("keep_best " + in_quotes(text) +
                     " names no output. Write the name of a test net's output, as in accuracy; "
                     "with =min or =max if it is neither a loss nor an accuracy.");
  return goal;
}

output_goal parse_stop_at(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == text.npos || equals == 0)
    throw spec_error("stop_at " + in_quotes(text) +
                     " is no goal. Write OUTPUT=VALUE, as in accuracy=0.99.");
  output_goal goal;
  goal.value = number_in(text, text.substr(equals + 1));
  auto name = text.substr(0, equals);
  if (name.ends_with('<') || name.ends_with('>')) {
    goal.than = name.back() == '<' ? better::less : better::more;
    name.remove_suffix(1);
  }
  goal.output = name;
  if (goal.output.empty())
    throw spec_error("stop_at " + in_quotes(text) +
                     " names no output. Write OUTPUT=VALUE, as in accuracy=0.99.");
  return goal;
}

std::optional<output_goal> keep_best_of(const ::caffe::SolverParameter& solver) {
  const auto& text = solver.poseidon().keep_best();
  return text.empty() ? std::nullopt : std::optional(parse_keep_best(text));
}

std::optional<output_goal> stop_at_of(const ::caffe::SolverParameter& solver) {
  const auto& text = solver.poseidon().stop_at();
  return text.empty() ? std::nullopt : std::optional(parse_stop_at(text));
}

void check_goals(const ::caffe::SolverParameter& solver) {
  const auto best = keep_best_of(solver), stop = stop_at_of(solver);
  if (!best && !stop) return;
  if (solver.test_iter_size() == 0 || solver.test_interval() == 0)
    throw spec_error((best ? "keep_best " + in_quotes(solver.poseidon().keep_best())
                           : "stop_at " + in_quotes(solver.poseidon().stop_at())) +
                     " needs tests, and there are none here. Give the solver a test net, test_iter "
                     "and test_interval.");
}

}  // namespace poseidon
