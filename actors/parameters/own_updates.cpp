#include "actors/parameters/own_updates.hpp"

#include "models/no_memory.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"

#include <utility>

namespace poseidon {

own_updates::own_updates(own_updates_setup setup)
    : setup_(std::move(setup)), rule_(rule_of(setup_.solver)) {
  for (const auto id : setup_.store->parameters()) {
    const auto& p = setup_.parameters[value(id)];
    const memory_for use("this node's own values of parameter", p.name);
    auto& of = of_.emplace_back();
    auto& state = state_.arrays.emplace_back();
    const auto values = setup_.store->values(id, 0);
    of.view->values.store(values.data());
    if (!is_updated(p)) continue;
    of.own.resize(values.size());
    if (p.average_momentum) continue;
    state.resize(setup_.clocks_kept);
    for (auto& clock : state)
      clock.assign(history_count(rule_.kind), std::vector<float>(values.size()));
  }
}

void own_updates::show(of_parameter& p, std::span<const float> values) {
  p.view->values.store(values.data(), std::memory_order_relaxed);
  p.view->version.fetch_add(1, std::memory_order_release);  // kernels pack what they read again
}

void own_updates::begin(parameter_id parameter, const pass_id& pass) {
  if (pass.index == 0) show(of_[parameter], setup_.store->current(parameter));
}

std::vector<state_array> own_updates::state_of(parameter_id parameter, std::uint64_t clock,
                                               std::uint64_t iteration) {
  auto& kept = state_.arrays[parameter];
  auto& after = kept[(clock + 1) % kept.size()];
  if (iteration > 0) return {after.begin(), after.end()};
  const auto& before = kept[clock % kept.size()];
  std::vector<state_array> out;
  for (std::size_t slot = 0; slot < after.size(); ++slot)
    out.emplace_back(std::span<const float>(before[slot]), std::span<float>(after[slot]));
  return out;
}

void own_updates::update(parameter_id parameter, std::uint64_t clock, std::uint64_t iteration,
                         std::span<const float> gradient) {
  auto& of = of_[parameter];
  const auto& p = setup_.parameters[value(parameter)];
  const auto before =
      iteration == 0 ? setup_.store->values(parameter, clock) : std::span<const float>(of.own);
  if (p.average_momentum) {
    setup_.arithmetic->update_average(momentum_over(*p.average_momentum, setup_.passes), gradient,
                                      before, of.own);
  } else {
    const auto now = iteration_of(setup_.solver, clock) + iteration;
    auto step = step_of(setup_.solver, p, now, setup_.scale);
    // Adam's t counts the updates that its state is made of.
    step.iteration = now - iteration_of(setup_.solver, state_.since);
    setup_.arithmetic->update(rule_, step, gradient, before, of.own,
                              state_of(parameter, clock, iteration));
  }
  show(of, of.own);
}

void own_updates::finish(parameter_id parameter, std::uint64_t clock, std::size_t workers) {
  auto& of = of_[parameter];
  const auto anchor = setup_.store->values(parameter, clock);
  if (setup_.parameters[value(parameter)].average_momentum)
    replace_by_change(anchor, 1.0f / static_cast<float>(workers), of.own);
  else
    replace_by_gradient(anchor, of.own);
}

}  // namespace poseidon
