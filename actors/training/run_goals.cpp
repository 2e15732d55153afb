#include "actors/training/run_goals.hpp"

#include "models/solver/outer_steps.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace poseidon {

namespace {

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

bool is_loss(const output_value& o) {
  return o.loss_weight > 0 || o.name == "test_loss";
}

}  // namespace

run_goals::run_goals(const ::caffe::SolverParameter& solver)
    : iterations_(iterations_per_clock(solver)) {
  if (auto best = keep_best_of(solver)) best_.emplace().wants = std::move(*best);
  if (auto stop = stop_at_of(solver)) stop_.emplace().wants = std::move(*stop);
}

/// Several test nets may have an output of this name: the first of them counts.
bool run_goals::goal::take(const test_found& t) {
  if (clock == t.clock) return false;
  const auto found = std::find_if(t.outputs.begin(), t.outputs.end(),
                                  [&](const auto& o) { return o.name == wants.output; });
  if (found == t.outputs.end()) return false;
  clock = t.clock;
  value = t.means.at(static_cast<std::size_t>(found - t.outputs.begin()));
  less = wants.than == better::less || (wants.than == better::by_kind && is_loss(*found));
  return true;
}

void run_goals::take(const test_found& t, time_point now) {
  if (best_ && best_->take(t)) {
    const auto value = best_->value;
    answer_.best = !std::isnan(value) &&
                   (!best_value_ || (best_->less ? value < *best_value_ : value > *best_value_));
    answer_.note.clear();
    if (answer_.best) {
      best_value_ = value;
      answer_.note = "the best " + best_->wants.output + " so far, " + digits(value) +
                     ", in the test of iteration " + std::to_string(t.clock * iterations_);
    }
  }
  if (stop_ && stop_->take(t)) {
    const auto value = stop_->value, wanted = stop_->wants.value;
    answer_.enough.clear();
    if (stop_->less ? value <= wanted : value >= wanted)
      answer_.enough = stop_->wants.output + " is " + digits(value) + ", which is " +
                       (stop_->less ? "at most " : "at least ") + digits(wanted) +
                       "; training took " + seconds_text(now - began_) + ", tests included";
  }
}

std::optional<run_goals::answer> run_goals::verdict(std::uint64_t clock) const {
  const auto known = [&](const std::optional<goal>& g) { return !g || g->clock == clock; };
  if (!known(best_) || !known(stop_)) return std::nullopt;
  return answer_;
}

}  // namespace poseidon
