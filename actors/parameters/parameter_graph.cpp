#include "actors/parameters/parameter_graph.hpp"

#include "actors/core/actor_names.hpp"
#include "actors/core/logic_bug.hpp"
#include "models/plan/keepers.hpp"
#include "models/solver/outer_steps.hpp"

namespace poseidon {

parameter_graph::parameter_graph(actor_spawner& spawner, parameter_graph_setup setup)
    : spawner_(spawner), setup_(std::move(setup)) {
  spawn_shard();
  spawn_keeper();
  spawn_checkpointer();
  spawn_groups();
}

/// A sum over all passes of a clock becomes their average; with outer steps the nodes' own moves become theirs.
float parameter_graph::scale() const {
  if (setup_.own) return 1.0f / static_cast<float>(setup_.workers);
  return 1.0f / static_cast<float>(setup_.means * setup_.batches);
}

/// A thread of its own takes longer to wake up than a shard takes to update some ten thousand values. Two such wake-ups
/// would lie between the first layer's gradient and its next forward pass. On a shared thread other messages wait while
/// the shard computes; of a node that is alone only those of its own layers do.
thread_kind parameter_graph::thread_for(std::size_t values) const {
  const std::size_t little = (setup_.workers > 1 ? 256 : 512) * std::size_t{1024};
  return values <= little ? thread_kind::shared : thread_kind::own;
}

/// Versions of solver state before the newest that the nodes that are left after a loss could go back to. Who is alone may lose those
/// that left with its view, and have state of it.
std::uint64_t parameter_graph::former_states() const {
  const bool can_lose = setup_.workers > 1 || !setup_.awaited_state.empty();
  return setup_.survive > 0 && can_lose ? setup_.staleness + 1 : 0;
}

/// What travels is what each node's parameters have moved. Of a running statistic it is the node's part of the mean change, which is
/// added to the value as it is: as of no pass, after which a part of the value is left.
void parameter_graph::take_outer_steps(server_shard_setup& s) const {
  s.solver = solver_of_outer_steps(setup_.solver);
  s.passes = 0;
  for (auto& p : s.parameters) p = in_outer_steps(p);
}

void parameter_graph::spawn_shard() {
  const auto& list = setup_.list;
  server_shard_setup s;
  s.self = setup_.self;
  s.workers = setup_.workers;
  s.replicas = setup_.means;
  s.passes = setup_.passes;
  s.scale = scale();
  s.solver = setup_.solver;
  s.update = setup_.update;
  s.lent = by_id<parameter_id, std::shared_ptr<const gradient_source>>(setup_.lent);
  s.first_state = setup_.first_state;
  s.places = setup_.places;
  s.parameters = list.parameters;
  for (const auto& p : list.parameters) s.learned.push_back(is_learned(p));
  if (setup_.own) take_outer_steps(s);
  s.first_uses = list.first_uses;
  for (const auto& layer : list.layers) s.names.push_back(spawner_.keep(layer));
  s.by_magnitude = setup_.by_magnitude;
  s.arithmetic = setup_.arithmetic;
  s.store = setup_.store;
  s.awaited_state = setup_.awaited_state;
  s.former_states = former_states();
  s.updates = setup_.updates;
  s.trace = spawner_.lane("server_shard");
  std::size_t values = 0;
  const auto& cut = setup_.store->cut();
  for (const auto id : cut.by_owner[setup_.self]) values += cut.chunks[id].count;
  shard_ = spawner_.start<server_shard>(thread_for(values), "server_shard", std::move(s));
}

void parameter_graph::spawn_keeper() {
  const auto& cut = setup_.store->cut();
  std::size_t values = 0;
  for (const auto id : cut.chunks.ids())
    if (is_keeper(cut, id, setup_.self)) values += cut.chunks[id].count;
  if (values == 0) return;
  // A program's shards need the program for each step, so they have no keepers.
  const auto* const rule = setup_.update.solver();
  if (rule == nullptr) throw logic_bug("copies of what a program updates", values, 0);
  state_keeper_setup s;
  s.self = setup_.self;
  s.first_clock = setup_.first_clock;
  s.rule = *rule;
  s.arithmetic = setup_.arithmetic;
  s.store = setup_.store;
  s.awaited_state = setup_.awaited_state;
  s.former_states = former_states();
  for (const auto& p : setup_.list.parameters) s.names.push_back(p.name);
  for (const auto& layer : setup_.list.layers) s.layers.push_back(spawner_.keep(layer));
  s.trace = spawner_.lane("state_keeper");
  keeper_ = spawner_.start<state_keeper>(thread_for(values), "state_keeper", std::move(s));
}

void parameter_graph::spawn_checkpointer() {
  if (setup_.checkpoints) return spawner_.adopt(setup_.checkpoints);
  checkpointer_setup s;
  s.history_slots = setup_.update.arrays();
  s.solver = setup_.solver;
  s.display = setup_.display;
  setup_.checkpoints = spawner_.start<checkpointer>(thread_kind::own, "checkpointer", std::move(s));
}

void parameter_graph::spawn_groups() {
  group_of_parameter_.resize(setup_.list.parameters.size());
  for (std::size_t g = 0; g < setup_.list.groups.size(); ++g) {
    auto& actors = groups_.emplace_back();
    actors.group = setup_.list.groups[g];
    actors.runs_ahead = !setup_.run_ahead.empty() && setup_.run_ahead[g];
    for (const auto p : actors.group.learned) group_of_parameter_[p] = g;
    for (const auto p : actors.group.frozen) group_of_parameter_[p] = g;
    if (const auto route = setup_.by_factors.find(g); route != setup_.by_factors.end())
      spawn_broadcast(actors, route->second);
    else if (const auto low = setup_.by_lowrank.find(g); low != setup_.by_lowrank.end())
      spawn_lowrank(actors, low->second);
    else
      spawn_push(actors, setup_.lent.empty() ? nullptr : setup_.lent[g]);
  }
  keep_memories();
}

void parameter_graph::make_sum(group_actors& g) const {
  std::vector<std::vector<std::span<float>>> parts;
  for (const auto& of_replica : setup_.gradients) {
    auto& part = parts.emplace_back();
    for (const auto p : g.group.learned) part.push_back(of_replica[p]);
  }
  const auto passes =
      setup_.own ? setup_.passes_per_update : setup_.micro_batches / setup_.passes_added;
  g.sum = std::make_shared<gradient_sum>(setup_.arithmetic, std::move(parts), passes,
                                         g.group.writers, setup_.staleness);
  if (setup_.by_magnitude)
    g.magnitudes = std::make_shared<chunk_magnitudes>(
        g.sum, setup_.store, g.group.learned,
        1.0f / static_cast<float>(setup_.means * setup_.micro_batches), setup_.staleness);
  g.encoder = encoder_of(g.group);
}

/// Null where all of a group's gradients travel as they are.
std::shared_ptr<gradient_encoder> parameter_graph::encoder_of(const learned_group& group) const {
  const auto& cut = setup_.store->cut();
  std::vector<gradient_encoder::part> parts;
  bool reduced = false;
  for (const auto p : group.learned) {
    const auto values = setup_.gradients.empty() ? setup_.store->values(p, 0).size()
                                                 : setup_.gradients.front()[p].size();
    const auto& chunks = cut.by_parameter[p];
    const auto format = chunks.empty() ? wire_format::float32 : cut.chunks[chunks.front()].format;
    parts.push_back({format, values});
    reduced = reduced || parts.back().format != wire_format::float32;
  }
  return reduced ? std::make_shared<gradient_encoder>(parts) : nullptr;
}

/// `lent`: where the gradient comes from; null: the replicas compute it.
void parameter_graph::spawn_push(group_actors& g,
                                 const std::shared_ptr<const gradient_source>& lent) {
  if (lent == nullptr)
    make_sum(g);
  else if (setup_.update.optimizer() != optimizer_rule::none)
    g.encoder = encoder_of(g.group);
  gradient_push_setup s;
  s.layer = g.group.first;
  s.name = spawner_.keep(g.group.name);
  s.self = setup_.self;
  s.contributions = g.group.writers * setup_.replicas;
  s.micro_batches = setup_.micro_batches;
  if (setup_.own) s.passes_per_update = setup_.passes_per_update;
  s.tells_taken = setup_.passes_overlap;
  s.of_side_branch = g.runs_ahead;
  s.staleness = setup_.staleness;
  s.parameters = g.group.learned;
  s.frozen = g.group.frozen;
  s.gradient = lent != nullptr ? lent : g.sum;
  if (setup_.own) s.gradient = std::make_shared<moved_parameters>(setup_.own, g.group.learned);
  s.places = setup_.places;
  s.magnitudes = g.magnitudes;
  s.encoder = g.encoder;
  s.of_program = lent != nullptr;
  s.store = setup_.store;
  s.overlap = setup_.overlap;
  const auto name = exchange_name("gradient_push", g.group.name);
  s.trace = spawner_.lanes_of_clocks(name, setup_.staleness);
  g.push = spawner_.start<gradient_push>(thread_kind::shared, name, std::move(s));
}

void parameter_graph::connect(const std::vector<port<send_frame>>& links,
                              std::vector<group_readers> readers, const port<layer_fresh>& solver) {
  connect_shard shard;
  shard.links = links;
  for (const auto p : setup_.list.parameters.ids()) shard.gather.push_back(push_of(p));
  shard.checkpointer = setup_.checkpoints;
  tell_from_outside(shard_, shard);
  if (keeper_) tell_from_outside(keeper_, connect_keeper{shard.gather});
  connect_checkpointer snapshots{setup_.files, setup_.store, links, shard_, {}, setup_.epoch};
  for (const auto& g : groups_)
    if (const auto updater = g.updater<copy_history>()) snapshots.own_updaters.push_back(updater);
  tell_from_outside(setup_.checkpoints, snapshots);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& hear = readers[g];
    if (groups_[g].broadcast)
      tell_from_outside(groups_[g].broadcast, connect_factor_broadcast{links, std::move(hear.fresh),
                                                                       solver, setup_.checkpoints});
    else if (groups_[g].lowrank)
      tell_from_outside(groups_[g].lowrank, connect_lowrank_exchange{links, std::move(hear.fresh),
                                                                     std::move(hear.taken), solver,
                                                                     setup_.checkpoints});
    else
      tell_from_outside(groups_[g].push,
                        connect_gradient_push{links, shard_, shard_, std::move(hear.fresh),
                                              std::move(hear.taken), solver});
  }
}

std::vector<port<parameters_whole>> parameter_graph::side_branches() const {
  std::vector<port<parameters_whole>> out;
  for (const auto& g : groups_)
    if (g.runs_ahead) out.push_back(g.actor<parameters_whole>());
  return out;
}

port<backward_done> parameter_graph::exchange(std::size_t g) const {
  return groups_[g].actor<backward_done>();
}

std::function<void(const pass_id&)> parameter_graph::contribution(std::size_t g) const {
  const auto& of = groups_[g];
  if (setup_.own) return own_contribution(of);
  return [sum = of.sum, magnitudes = of.magnitudes, encoder = of.encoder,
          parts = of.group.learned.size(), last = setup_.micro_batches - 1,
          added = setup_.passes_added](const pass_id& p) {
    const auto clock = value(p.clock);
    if (!sum->contribute(clock, p.index / added) || p.index != last) return;
    if (magnitudes != nullptr) magnitudes->weigh(clock);
    for (std::size_t i = 0; encoder != nullptr && i < parts; ++i)
      encoder->encode(i, sum->total(clock, i));
  };
}

/// The stream that completes an iteration's gradients makes this node's update of them, and after the clock's last one what it sends.
std::function<void(const pass_id&)> parameter_graph::own_contribution(
    const group_actors& of) const {
  return [sum = of.sum, encoder = of.encoder, own = setup_.own, parameters = of.group.learned,
          passes = setup_.passes_per_update, last = setup_.micro_batches - 1,
          workers = setup_.workers](const pass_id& p) {
    const auto clock = value(p.clock);
    if (!sum->contribute(clock, p.index % passes) || (p.index + 1) % passes != 0) return;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      own->update(parameters[i], clock, p.index / passes, sum->total(clock, i));
    if (p.index != last) return;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      own->finish(parameters[i], clock, workers);
      if (encoder != nullptr) encoder->encode(i, own->moved(parameters[i]));
    }
  };
}

port<chunk_landed> parameter_graph::receiver_of(parameter_id parameter) const {
  return groups_[group_of_parameter_[parameter]].actor<chunk_landed>();
}

port<chunk_fresh> parameter_graph::push_of(parameter_id parameter) const {
  const auto& push = groups_[group_of_parameter_[parameter]].push;
  return push ? port<chunk_fresh>(push) : port<chunk_fresh>();
}

port<history_inherited> parameter_graph::history_owner(chunk_id chunk) const {
  const auto& cut = setup_.store->cut();
  const auto& c = cut.chunks[chunk];
  if (is_keeper(cut, chunk, setup_.self)) return keeper_;
  if (c.owner != every_worker) return shard_;
  return groups_[group_of_parameter_[c.parameter]].updater<history_inherited>();
}

std::vector<port<release_history>> parameter_graph::histories() const {
  std::vector<port<release_history>> out{shard_};
  if (keeper_) out.push_back(keeper_);
  for (const auto& g : groups_)
    if (const auto updater = g.updater<release_history>()) out.push_back(updater);
  return out;
}

port<factors_landed> parameter_graph::broadcast(layer_id layer) const {
  for (const auto& g : groups_)
    if (g.broadcast && g.group.first == layer) return g.broadcast;
  return {};
}

port<lowrank_landed> parameter_graph::lowrank(layer_id layer) const {
  for (const auto& g : groups_)
    if (g.lowrank && g.group.first == layer) return g.lowrank;
  return {};
}

}  // namespace poseidon
