// actors/node/node_forming.cpp - node until training begins: finding the other nodes, the view, the graph.
#include "actors/core/actor_names.hpp"
#include "actors/links/link_spans.hpp"
#include "actors/node/link_bindings.hpp"
#include "actors/node/node.hpp"
#include "actors/run/run_codec.hpp"
#include "actors/run/throughput_probe.hpp"
#include "models/words.hpp"

#include <utility>

namespace poseidon {

// -- finding the others ---------------------------------------------------------------------------------

member_setup node::membership() {
  member_setup m;
  m.network = setup_.network;
  m.token = setup_.token;
  m.stop = setup_.stop;
  m.display = setup_.display;
  m.tell = [this](const port<send_frame>& link, send_frame f) {
    const auto bytes = f.data.bytes.size();
    tell(link, std::move(f), bytes);
  };
  m.equip = [this](worker_id worker, link_options& o) {
    const handle<node> self(this);
    o.binding.routes.control = self;
    o.binding.routes.lost = self;
    o.rate_mbit_s = setup_.link_mbit_s;
    o.budget_mbit_s = setup_.budget_mbit_s;
    setup_.view->own().opened(value(worker), o.counters);
    // A joiner opens its first link before it knows whether the run is watched.
    if (setup_.trace->enabled() || setup_.join)
      o.trace = spans_of_link(setup_.trace, link_name(value(worker)), run_.chunk_layers(),
                              run_.layer_names());
  };
  return m;
}

member_context node::here() {
  const handle<node> self(this);
  return {system(), *setup_.edges, self, self};
}

void node::on(const start_node&) {
  guarded([this] {
    if (setup_.join) {
      phase_ = run_phase::gathering;
      member_.join(*setup_.join, here());
    } else if (setup_.run->workers > 1) {
      leading_ = std::make_unique<leading>(*this);
      leading_->choose();
    } else {
      member_.enter(view_of_leader());
      build();
    }
  });
}

void node::on(const routes_chosen& m) {
  guarded([&] { leading_->on(m); });
}

void node::on(const link_accepted& m) {
  if (phase_ == run_phase::failing || phase_ == run_phase::ended) return;
  switch (member_.admit(m.connection, leading_ ? leading_->room() : 0, here())) {
    case member::admission::joined:
      return leading_->joined(m.connection.peer.listen_address);
    case member::admission::linked:
      return guarded([this] { bind_if_complete(); });
    case member::admission::kept:
    case member::admission::stranger:
      return;
  }
}

void node::on(const peer_refused& m) {
  setup_.display->note("refused: " + m.text);
}

void node::on(const view_agreed& m) {
  guarded([&] { leading_->on(m); });
}

void node::on(const frames::view& f, worker_id from) {
  guarded([&] {
    member_.enter(view_told(f, from));
    for (const auto& line : view().lines()) setup_.display->detail(line);
    setup_.run = run_of(f);
    take_number_of_replicas(f);
    watched_ = f.watched;
    if (watched_) setup_.trace->watch();
    setup_.display->note("worker " + std::to_string(value(view().self)) + " of " +
                         std::to_string(view().members.size()));
    member_.dial_members(here());
    for (const auto& c : member_.take_early()) on(link_accepted{c});
    build();
  });
}

// -- shares of the batch ---------------------------------------------------------------------------------

/// A joiner, which has no view yet.
void node::on(const frames::time_net& f, worker_id) {
  guarded([&] {
    frames::view only_net;
    only_net.solver = f.solver;
    only_net.seed = f.seed;
    only_net.members.resize(2);
    const auto run = run_of(only_net);
    if (f.measure) setup_.display->note("batch: this node measures how fast it trains this net");
    const auto speed = speed_of(run, setup_.node, f.measure, display_of(setup_));
    member_.to_leader(frames::net_timed{speed.replicas, speed.samples_s});
  });
}

void node::on(const frames::net_timed& f, worker_id from) {
  guarded([&] { leading_->on(f, from); });
}

/// The leader says all of them, the others their own.
void node::note_shares() {
  const auto& shares = setup_.run->shares;
  const auto self = view().self;
  const auto each = run_.compiled().micro_batches;
  for (std::uint32_t w = 0; w < shares.size(); ++w)
    if (view().leads() || worker_id{w} == self)
      setup_.display->note(
          "batch: " + (worker_id{w} == self ? "this node" : view().name_of(worker_id{w})) +
          "\'s share " + describe_share(shares[w].samples * each, samples_of_all(shares) * each) +
          (shares[w].replicas > 1 ? ", on " + plural(shares[w].replicas, "replica") : ""));
}

/// With equal shares a gradient is the mean over all replicas only if every node has the same number. A machine that was
/// not told how many to have does as the first node, however many cores either has.
void node::take_number_of_replicas(const frames::view& v) {
  auto& node = setup_.node;
  if (!v.shares.empty() || v.replicas == 0 || node.replicas != 0 || node.compute->replicas() != 0)
    return;
  node.replicas = v.replicas;
  setup_.display->detail("batch: split over " + plural(v.replicas, "replica") +
                         ", as on the first node");
}

// -- building -------------------------------------------------------------------------------------------

void node::build() {
  phase_ = run_phase::building;
  run_.build(view().self);
  note_shares();
  run_.describe();
  double limit = 0;
  for (const auto l : {setup_.link_mbit_s, setup_.budget_mbit_s})
    if (l > 0) limit = limit > 0 ? std::min(limit, l) : l;
  watch_ = link_watch(setup_.run->workers - 1, limit);
  spawn_graph();
  telemetry_ = poseidon::spawn<telemetry>(
      system(), *setup_.edges, thread_kind::own, "telemetry",
      telemetry_setup{view().self, setup_.trace, setup_.edges, setup_.view,
                      setup_.shows && view().leads() && setup_.run->workers > 1, watched_,
                      setup_.trace_file, setup_.graph_file, setup_.recording});
  run_.show_facts(view(), leading_ ? leading_->decisions() : std::vector<route_decision>{},
                  change_);
  bind_if_complete();
}

void node::spawn_graph() {
  const handle<node> self(this);
  links_bound_ = 0;
  for (const auto& a : run_.spawn({system(),
                                   *setup_.edges,
                                   *setup_.trace,
                                   view().self,
                                   setup_.budget_mbit_s > 0,
                                   setup_.display,
                                   self,
                                   self,
                                   self,
                                   self,
                                   self,
                                   {},
                                   [view = setup_.view] { return view->own().carried(); }}))
    monitor(a);
}

void node::bind_if_complete() {
  const auto& links = member_.links();
  const bool builds = phase_ == run_phase::building || phase_ == run_phase::rebuilding;
  if (!builds || !run_.built() || links.size() + 1 < setup_.run->workers) return;
  if (links.empty()) return connect();
  const handle<node> self(this);
  binding_context c{
      view(), *setup_.run, run_.compiled(), run_.graph().parameters(), self, self, self,
      self,   {},          change_.before()};
  if (setup_.shows && view().leads()) c.reports = telemetry_;
  for (const auto& [worker, link] : links) tell<bind_link>(link, {binding_to(worker, c)});
}

/// No peer hears that this node is ready before all links are bound: then all peers may send.
void node::on(const link_bound&) {
  if (phase_ != run_phase::building && phase_ != run_phase::rebuilding) return;
  if (++links_bound_ == member_.links().size()) connect();
}

void node::connect() {
  if (phase_ == run_phase::building) show_first_values();
  auto ports = member_.ports(setup_.run->workers);
  run_.graph().connect(ports);
  tell<connect_telemetry>(telemetry_, {std::move(ports)});
  phase_ = phase_ == run_phase::building ? run_phase::waiting : run_phase::resuming;
  setup_.display->detail("membership: links to " + plural(member_.links().size(), "node") +
                         " and all actors stand; waiting for the others");
  if (!view().leads())
    member_.to_leader(frames::member_ready{view().self, run_.compiled().replicas});
  else if (leading_)
    leading_->ready(view().self);
  else
    on(everyone_ready{});
}

void node::on(const frames::member_ready& f, worker_id) {
  leading_->on(f);
}

/// All links of all nodes are bound now: values may travel.
void node::on(const everyone_ready&) {
  guarded([this] {
    if (leading_) leading_->check_replicas();
    if (leading_) leading_->announce_next_change();
    if (phase_ == run_phase::resuming) return resume();
    setup_.display->detail("membership: all are ready; sending first values, training begins");
    give_first_values();
    member_.broadcast(frames::start_training{});
    begin();
  });
}

void node::on(const frames::start_training&, worker_id) {
  if (phase_ == run_phase::resuming) return guarded([this] { resume(); });
  setup_.display->detail("membership: all are ready, training begins");
  begin();
}

void node::begin() {
  phase_ = run_phase::training;
  take_next_change();
  tell<begin_training>(run_.the_solver(), {clock_id{setup_.run->first_clock}});
}

}  // namespace poseidon
