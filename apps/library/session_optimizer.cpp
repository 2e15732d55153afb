// apps/library/session_optimizer.cpp - the part of session that is about an optimizer whose steps the shards make.
#include "apps/library/session.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poseidon::library {

void session::optimize(optimizer_rule rule, std::vector<std::uint32_t> groups) {
  require_own_process();
  const std::lock_guard lock(ends_);
  require_before_begin("poseidon_optimize");
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i] >= most_groups)
      throw session_error("\"" + program_->declared[i].name + "\" is in group " +
                          std::to_string(groups[i]) + ", expected less than " +
                          std::to_string(most_groups));
  told_.resize(groups.empty() ? 0 : 1 + *std::max_element(groups.begin(), groups.end()));
  groups_ = std::move(groups);
  program_->optimizer = rule;
  program_->first_state = by_id<parameter_id, std::vector<const float*>>(
      rule == optimizer_rule::none ? 0 : program_->declared.size());
}

void session::step(std::size_t group, const optimizer_step& step) {
  require_own_process();
  require_not_left();
  if (group >= told_.size())
    throw session_error("group " + std::to_string(group) + " has no parameters");
  for (const double v :
       {step.rate, step.weight_decay, step.momentum, step.dampening, step.beta2, step.epsilon})
    if (!std::isfinite(v))
      throw session_error("a hyperparameter of group " + std::to_string(group) + " is " +
                          std::to_string(v));
  told_[group] = step;
}

/// The values that the shards step from are read after the program's next push of this parameter.
void session::step_from(std::size_t parameter, const float* values) {
  const auto id = known(parameter);
  if (program_->optimizer == optimizer_rule::none)
    throw session_error("the workers make no steps, and \"" + program_->declared[parameter].name +
                        "\" is told to step from: poseidon_optimize has not been called");
  program_->lent[id]->step_from(values);
}

/// Of the gradient that is pushed now. This parameter's version is here, so all its updates have been counted.
std::optional<optimizer_step> session::step_of(parameter_id parameter) const {
  if (groups_.empty() || program_->declared[value(parameter)].given) return std::nullopt;
  const auto group = groups_[value(parameter)];
  auto step = told_[group];
  if (!step)
    throw session_error("\"" + program_->declared[value(parameter)].name +
                        "\" is pushed before poseidon_step has said how group " +
                        std::to_string(group) + " steps");
  step->number = 1 + program_->steps_made[value(parameter)];
  return step;
}

void session::first_state(std::size_t parameter, std::uint64_t steps,
                          std::vector<const float*> state) {
  require_own_process();
  const std::lock_guard lock(ends_);
  require_before_begin("poseidon_first_state");
  if (program_->first_state.size() == 0)
    throw session_error("state is given after poseidon_optimize has named an optimizer");
  const auto id = id_of(parameter);
  if (const auto arrays = history_count(program_->optimizer); state.size() > arrays)
    throw session_error("the state of \"" + program_->declared[parameter].name + "\" has " +
                        plural(state.size(), "array") + ", " +
                        std::string(name_of(program_->optimizer)) + " has " +
                        std::to_string(arrays));
  program_->steps_made[parameter] = steps;
  program_->first_state[id] = std::move(state);
}

bool session::read_state(seconds limit) {
  require_training();
  if (program_->optimizer == optimizer_rule::none)
    throw session_error(
        "the shards have no optimizer's state: poseidon_optimize has not been called");
  const std::unique_lock reads(reads_, limit);
  if (!reads) return false;
  tell_pushed();
  const auto version = next_clock_[0].load();
  for (const auto p : program_->lent.ids()) {
    const auto& name = program_->declared[value(p)].name;
    if (next_clock_[value(p)] != version)
      throw session_error("state is read in the middle of clock " +
                          std::to_string(std::min(version, next_clock_[value(p)].load())) + ": \"" +
                          name + "\" has not been pushed");
    const auto here = program_->fresh.wait(p, version, seconds(0));
    if (here == fresh_board::answer::failed) throw session_error(program_->fresh.error());
    if (here == fresh_board::answer::not_yet)
      throw session_error("state is read before version " + std::to_string(version) + " of \"" +
                          name + "\" is here");
  }
  if (state_of_ == version) return true;
  if (!std::exchange(state_asked_, true)) program_->caller.tell(state_wanted{version_id{version}});
  const program_calls::waits waits(program_->calls);
  auto came = program_->state.take(limit);
  if (!came) {
    if (program_->clocks.is_closed()) throw session_error(program_->fresh.error());
    return false;
  }
  state_asked_ = false;
  state_ = std::move(*came);
  state_of_ = version;
  return true;
}

const float* session::state(std::size_t parameter, std::size_t slot) const {
  if (slot >= state_.history.size()) return nullptr;
  const auto& arrays = state_.history[slot];
  return parameter < arrays.size() ? arrays[parameter].data() : nullptr;
}

std::uint64_t session::steps(std::size_t parameter) const {
  return program_->steps_made[value(known(parameter))];
}

}  // namespace poseidon::library
