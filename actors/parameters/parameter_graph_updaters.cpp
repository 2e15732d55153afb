// Groups whose parameters every node updates in a copy of its own: a part of parameter_graph.hpp.
#include "actors/core/actor_names.hpp"
#include "actors/core/logic_bug.hpp"
#include "actors/parameters/parameter_graph.hpp"
#include "models/plan/byte_scale.hpp"

#include <utility>

namespace poseidon {

/// Values of solver state that come from the view before.
std::size_t parameter_graph::awaited_by(const learned_group& group) const {
  std::size_t values = 0;
  if (setup_.awaited_state.empty()) return values;
  for (const auto p : group.learned)
    for (const auto id : setup_.store->cut().by_parameter[p]) values += setup_.awaited_state[id];
  return values;
}

void parameter_graph::spawn_broadcast(group_actors& g, const factor_route& route) {
  const auto byte_scale = setup_.computes ? 1.0 : setup_.solver.poseidon().replay().byte_scale();
  factor_broadcast_setup s;
  s.layer = g.group.first;
  s.name = spawner_.keep(g.group.name);
  s.self = setup_.self;
  s.workers = setup_.workers;
  s.passes = std::size_t{setup_.micro_batches} * setup_.replicas;
  s.scale = scale();
  s.solver = setup_.solver;
  s.update = setup_.update;
  if (!setup_.lent.empty()) s.lent = setup_.lent[value(g.group.learned.front())];
  s.places = setup_.places;
  s.of_side_branch = g.runs_ahead;
  s.staleness = setup_.staleness;
  s.parameters = g.group.learned;
  s.frozen = g.group.frozen;
  s.of_net = setup_.list.parameters;
  s.arithmetic = setup_.arithmetic;
  s.computes = setup_.computes;
  s.store = setup_.store;
  s.updates = setup_.updates;
  s.awaited_state = awaited_by(g.group);
  s.former_states = former_states();
  s.factors =
      std::make_shared<factor_store>(scaled(route.pass, byte_scale), route.rows, setup_.first_clock,
                                     setup_.staleness, setup_.host_memory);
  s.product = route.pass;
  s.product.rows = s.factors->of_all().rows;
  factors_[s.layer] = s.factors;
  s.overlap = setup_.overlap;
  const auto name = exchange_name("factor_broadcast", g.group.name);
  s.trace = spawner_.lanes_of_clocks(name, setup_.staleness);
  g.broadcast = spawner_.start<factor_broadcast>(thread_kind::own, name, std::move(s));
}

void parameter_graph::spawn_lowrank(group_actors& g, const lowrank_route& route) {
  // A program's own optimizer makes its steps with the mean; the shards' would need the values that it begins with.
  if (setup_.update.optimizer() != optimizer_rule::none)
    throw logic_bug("an optimizer of shards on a lowrank route", 1, 0);
  const bool is_lent = !setup_.lent.empty();
  if (!is_lent) make_sum(g);
  const auto threads = thread_for(route.shape.values());
  lowrank_exchange_setup s;
  s.layer = g.group.first;
  s.name = spawner_.keep(g.group.name);
  s.self = setup_.self;
  s.workers = setup_.workers;
  s.seed = setup_.seed;
  s.contributions = g.group.writers * setup_.replicas;
  s.micro_batches = setup_.micro_batches;
  s.tells_taken = setup_.passes_overlap;
  s.of_side_branch = g.runs_ahead;
  s.staleness = setup_.staleness;
  s.scale = scale();
  s.solver = setup_.solver;
  s.update = setup_.update;
  s.shape = route.shape;
  s.rounded = route.rounded;
  s.parameters = g.group.learned;
  s.frozen = g.group.frozen;
  s.of_net = setup_.list.parameters;
  if (is_lent)
    s.gradient = setup_.lent[value(g.group.learned.front())];
  else
    s.gradient = g.sum;
  s.places = setup_.places;
  s.arithmetic = setup_.arithmetic;
  s.own_thread = threads == thread_kind::own;
  s.store = setup_.store;
  s.turns = turns_[s.layer] = std::make_shared<lowrank_turns>(
      route.owner, route.frames.first, route.frames.second, setup_.first_clock);
  s.memory = memory_of(g.group, route.shape.values());
  s.awaited_state = awaited_by(g.group);
  s.former_states = former_states();
  s.overlap = setup_.overlap;
  const auto name = exchange_name("lowrank_exchange", g.group.name);
  s.trace = spawner_.lanes_of_clocks(name, setup_.staleness);
  g.lowrank = spawner_.start<lowrank_exchange>(threads, name, std::move(s));
}

std::shared_ptr<error_memory> parameter_graph::memory_of(const learned_group& group,
                                                         std::size_t values) {
  auto& memory = setup_.memories[group.first];
  if (memory == nullptr) memory = std::make_shared<error_memory>();
  memory->begin(values, value(setup_.first_clock), former_states());
  return memory;
}

/// What a layer had not sent when it left the route is lost.
void parameter_graph::keep_memories() {
  std::erase_if(setup_.memories, [this](const auto& of) { return turns_.count(of.first) == 0; });
}

}  // namespace poseidon
