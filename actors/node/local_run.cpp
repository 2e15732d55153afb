#include "actors/node/local_run.hpp"

#include "actors/core/logic_bug.hpp"
#include "actors/membership/view_rules.hpp"
#include "actors/run/compile_declared.hpp"
#include "actors/run/compile_run.hpp"
#include "actors/run/data_sets.hpp"
#include "actors/run/kinds.hpp"
#include "actors/run/run_codec.hpp"
#include "actors/run/run_description.hpp"
#include "actors/telemetry/run_facts.hpp"
#include "models/plan/keepers.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace poseidon {

void local_run::settle_batch() {
  const auto& choices = setup_.choices;
  batch_wish wish{choices.global_batch.value_or(batch_rule::scale), setup_.first.global_batch, 1};
  for (const auto& [clock, nodes] : choices.views)
    wish.most_nodes = std::max(wish.most_nodes, nodes);
  for (const auto& line : settle_global_batch(*setup_.run, setup_.node, wish))
    setup_.display->warning(line);
}

std::uint32_t local_run::try_out(worker_id self) {
  if (!setup_.run->declared.empty()) return setup_.node.replicas;
  auto node = setup_.node;
  node.worker = value(self);
  tried_ = compile_run(with_whole_batches(*setup_.run, node), node, display_of(setup_));
  compare_data(data_sets_of(*tried_), *setup_.run, node);
  return tried_->replicas;
}

void local_run::build(worker_id self) {
  auto& run = *setup_.run;
  setup_.node.worker = value(self);
  if (tried_ && fit_to_view(*tried_, run, setup_.node))
    compiled_ = std::move(tried_);
  else
    tried_.reset();  // a node need not have room for two
  if (!compiled_)
    compiled_ = run.declared.empty()
                    ? compile_run(run, setup_.node, display_of(setup_), std::exchange(opened_, {}))
                    : compile_declared(run, setup_.node);
  const auto own_data_sets = data_sets_of(*compiled_);
  compare_data(own_data_sets, run, setup_.node);
  if (run.data_sets.empty()) run.data_sets = own_data_sets;
  if (setup_.around) setup_.around->store = compiled_->store;
  for (const auto& layer : train().layers)
    layer_names_->push_back(setup_.records.trace->keep(layer.name));
  began_at_ = run.first_clock;
  if (compiled_->own) compiled_->own->begin_at(began_at_);
}

void local_run::describe_program() {
  const auto& around = setup_.around;
  auto& run = *setup_.run;
  if (around == nullptr || (run.workers == 1 && !run.takes_newcomers)) return;
  run.first_digests = around->first_digests();
  run.shared = entries_of(around->shared);
}

/// A run that begins with one node has built before another one can come.
void local_run::describe_data() {
  auto& run = *setup_.run;
  if (run.workers == 1 || !run.declared.empty() || !setup_.node.compute->computes()) return;
  opened_ = open_for(display_of(setup_));
  run.data_sets = data_sets_of(run, setup_.node, opened_);
}

void local_run::describe(const std::vector<frames::member>& members) {
  const auto& run = *setup_.run;
  for (const auto& line : compiled_->warnings) setup_.display->warning(line);
  for (const auto& line : compiled_->remarks) setup_.display->note(line);
  promise(members, true);
  for (const auto& line : describe_run(*compiled_, run)) setup_.display->detail(line);
  for (const auto& line : describe_partition(*compiled_, run.workers)) setup_.display->detail(line);
}

namespace {

/// Without the workers: who has which value changes whenever a node comes or leaves.
std::vector<progress::promise::difference> values_of(
    std::vector<progress::promise::difference> differences) {
  for (auto& d : differences)
    for (auto& [value, seats] : d.who) seats.clear();
  return differences;
}

}  // namespace

/// A run goes on with what nodes have computed that have left since.
void local_run::promise(const std::vector<frames::member>& members, bool changed) {
  auto& run = *setup_.run;
  const auto nodes = with_kinds(members, run.kinds);
  run.kinds = kinds_of(nodes);
  const auto now = describe_promise(*compiled_, run, nodes);
  const auto differ = values_of(now.differences);
  changed = std::exchange(differ_, differ) != differ || changed;
  if (changed && !now.text.empty()) setup_.display->promised(now);
}

std::uint64_t local_run::first_sample_of(clock_id clock) const {
  const auto& run = *setup_.run;
  if (!run.declared.empty()) return run.data.samples;
  return run.data.samples +
         (value(clock) - run.first_clock) * schedule_of(run, *compiled_).samples_per_clock();
}

partition local_run::cut_for(std::size_t workers, const std::vector<std::uint8_t>& routes) const {
  parameter_routes by_parameter;
  for (const auto r : routes) by_parameter.push_back(static_cast<route>(r));
  auto cut = make_partition(train(), workers, by_parameter,
                            setup_.run->solver.spec.poseidon().replay().byte_scale());
  if (setup_.run->declared.empty()) set_keepers(cut, train().parameters, setup_.run->survive);
  return cut;
}

std::shared_ptr<const partition> local_run::before(const kept_state& kept) const {
  if (kept.before() || former_.seats.empty()) return kept.before();
  return std::make_shared<partition>(cut_for(former_.seats.size(), former_.routes));
}

bool local_run::bring_home(const view_change& change, const kept_state& kept, seat_id self) {
  store()->come_home();
  if (kept.before() == nullptr) return false;  // a newcomer gets them when the view begins
  const bool lacks = has_seat(change.next().lacking, self);
  store()->go_back(value(change.clock()) - (lacks ? 1 : 0));
  if (lacks)
    for (const auto p : store()->parameters())
      store()->set_mean(p, value(change.clock()), parameter_store::mean_is::here);
  return !lacks;
}

void local_run::rebuild(const view_change& change, const kept_state& kept,
                        const agreed_view& view) {
  const auto old = store();
  const bool has_values = bring_home(change, kept, view.seat);
  const auto clock = value(change.clock());
  const auto& next = change.next();
  auto& run = *setup_.run;
  const bool declared = !run.declared.empty();
  run.data.test_phases = test_phases_before(change.clock());
  run.data.samples = first_sample_of(change.clock());
  run.first_clock = clock;
  run.routes.clear();
  for (const auto r : next.routes) run.routes.push_back(static_cast<route>(r));
  run.reasons.clear();
  run.factor_rows = next.factor_rows;
  run.given = next.given;
  run.workers = next.members.size();
  run.shares = shares_told(next.shares, run.solver);
  setup_.node.worker = value(view.self());

  graph_.reset();
  if (!fit_to_view(*compiled_, run, setup_.node)) {
    std::optional<own_updates::node_state> own;
    if (compiled_->own) own = compiled_->own->release_state();
    compiled_.reset();  // before there is another one: a node need not have room for two
    compiled_ = declared ? compile_declared(run, setup_.node, old.get())
                         : compile_run(run, setup_.node, display_of(setup_));
    if (own) compiled_->own->take_state(std::move(*own));
  }
  for (const auto p : store()->parameters()) {
    if (!has_values) break;
    const auto from = old->current(p);
    const auto to = store()->values(p, clock);
    if (from.data() != to.data()) std::copy(from.begin(), from.end(), to.begin());
    store()->publish(p, clock);
  }
  for (const auto& line : describe_partition(*compiled_, run.workers)) setup_.display->detail(line);
}

/// Nothing of an older graph is on its way any more: the links have nothing to ask chunk_layers_ for.
const std::vector<caf::actor>& local_run::spawn(graph_context context) {
  chunk_layers_->clear();
  for (const auto& c : store()->cut().chunks)
    chunk_layers_->push_back(setup_.records.trace->keep(
        train().layers[train().parameters[value(c.parameter)].layer].name));
  context.lasting = lasting_;
  graph_ = std::make_unique<training_graph>(context, *setup_.run, setup_.node, *compiled_,
                                            setup_.around);
  lasting_ = graph_->lasting();
  return graph_->monitored();
}

void local_run::show_facts(const agreed_view& view, const std::vector<route_decision>& decisions,
                           const view_change& change, const kept_state& kept) const {
  auto facts = facts_of(*compiled_, *setup_.run, decisions);
  facts.promise =
      describe_promise(*compiled_, *setup_.run, with_kinds(view.members, setup_.run->kinds)).text;
  facts.self = value(view.seat);
  for (const auto& m : view.members) facts.members[value(m.seat)] = m.address;
  for (const auto& w : view.witnesses) facts.witnesses[value(w.seat)] = w.address;
  facts.leader = value(view.leader());
  facts.epoch = view.epoch;
  facts.first_clock = iteration_of(*setup_.run, began_at_);
  if (kept.before() != nullptr)
    keep_reasons(setup_.records.view->read([](const auto& s) { return s.facts->routes; }),
                 "changed at iteration " +
                     std::to_string(iteration_of(*setup_.run, value(change.clock()))) + ": " +
                     change.next().why,
                 facts.routes);
  setup_.records.view->begin(std::move(facts));
}

std::uint64_t local_run::test_phases_before(clock_id clock) const {
  const auto& run = *setup_.run;
  const auto& spec = run.solver.spec;
  const auto interval = clocks_of(spec, spec.test_interval());
  auto phases = run.data.test_phases;
  if (interval == 0 || compiled_->tests.empty()) return phases;
  for (auto c = run.first_clock; c < value(clock); ++c)
    if (c % interval == 0 && (c > 0 || spec.test_initialization())) ++phases;
  return phases;
}

std::optional<version_id> local_run::whole_version() const {
  const auto version = least_version();
  const auto& around = setup_.around;
  // Between programs a member may lack the version that its view begins with, and has the one before.
  if (!version || (!around && *version < setup_.run->first_clock)) return std::nullopt;
  const bool awaits_shared =
      around && (!around->has_shared.empty() || around->newcomers.joined_at().has_value());
  if (awaits_shared && !around->shared_in_flight.is_over()) return std::nullopt;
  const auto all = store()->parameters();
  const bool has_all = std::all_of(all.begin(), all.end(), [&](parameter_id p) {
    return !is_updated(train(), value(p)) || store()->has_values(p);
  });
  return has_all ? std::optional(version_id{*version}) : std::nullopt;
}

std::optional<std::uint64_t> local_run::least_version() const {
  if (compiled_ == nullptr) return std::nullopt;
  auto version = std::numeric_limits<std::uint64_t>::max();
  for (const auto p : store()->parameters())
    if (is_updated(train(), value(p))) version = std::min(version, store()->version(p));
  return version;
}

std::optional<version_id> local_run::trained_version() const {
  const auto version = least_version();
  if (!version || *version <= began_at_) return std::nullopt;
  return version_id{*version};
}

std::vector<port<shut_down>> local_run::all() const {
  if (graph_ != nullptr) return graph_->all();
  return {the_trainer().end, lasting_.checkpoints};  // the next graph could not be built
}

std::shared_ptr<const void> local_run::drop() {
  graph_.reset();
  lasting_ = {};
  return std::move(compiled_);
}

}  // namespace poseidon
