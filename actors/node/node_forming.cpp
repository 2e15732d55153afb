// actors/node/node_forming.cpp - the first half of node: finding the others, building the graph, first values.
#include "actors/links/link_spans.hpp"
#include "actors/node/node.hpp"
#include "actors/parameters/peer_window.hpp"
#include "actors/run/run_codec.hpp"
#include "actors/run/run_description.hpp"
#include "actors/telemetry/run_facts.hpp"
#include "models/words.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// Lands a peer's fresh chunks in the parameter store, and its factors in their layer's.
class store_landing : public landing {
 public:
  store_landing(std::shared_ptr<parameter_store> store, factor_stores factors)
      : store_(std::move(store)), factors_(std::move(factors)) {}
  std::span<std::byte> place(chunk_id chunk, version_id version) override {
    return std::as_writable_bytes(store_->at(value(chunk), value(version)));
  }
  void add_changes(chunk_id chunk, version_id version, std::span<const std::byte> bytes) override {
    add_decoded(store_->cut().chunks[value(chunk)].format, bytes,
                store_->at(value(chunk), value(version) - 1),
                store_->at(value(chunk), value(version)));
  }
  std::span<std::byte> place_factors(worker_id from, const frames::factors& f) override {
    return std::as_writable_bytes(
        factors_.at(value(f.layer))->piece(f.clock, from, f.rows, f.first));
  }

 private:
  std::shared_ptr<parameter_store> store_;
  factor_stores factors_;
};

/// What a worker's solver reports of each net (actors/training/solver.hpp).
std::vector<report_shape> reports_of(const compiled_run& c, const run_definition& run,
                                     worker_id worker) {
  std::vector<report_shape> out{{static_cast<std::uint32_t>(1 + c.train.outputs.size()), 1}};
  for (std::size_t t = 0; t < c.tests.size(); ++t) {
    const auto batches = run.solver.spec.test_iter(static_cast<int>(t));
    // As if it had one replica: how a node shares its passes out among several does not change their number.
    const test_share share{static_cast<std::uint64_t>(batches), run.workers, value(worker), 1};
    out.push_back({static_cast<std::uint32_t>(c.tests[t].outputs.size()),
                   static_cast<std::uint32_t>(share.passes(0))});
  }
  return out;
}

}  // namespace

/// Runs a step of building; what it throws is the user's to read, not a crash.
void node::guarded(const std::function<void()>& step) {
  try {
    step();
  } catch (const std::invalid_argument& e) {
    fail(e.what(), 2);
  } catch (const handshake_error& e) {
    fail(e.what(), 2);
  } catch (const socket_error& e) {
    if (e.error == ECANCELED) return;  // `interrupted` is the next message, and ends it
    fail(e.what(), 2);
  } catch (const std::exception& e) {
    fail(e.what(), 1);
  }
}

// -- finding the others ---------------------------------------------------------------------------------

void node::on(const start_node&) {
  guarded([this] {
    if (setup_.join) {
      join_cluster();
      return;
    }
    self_ = leader_;
    if (setup_.run->workers > 1)
      choose();
    else
      build();
  });
}

handshake_options node::shaking(link_identity self) const {
  handshake_options o;
  o.token = setup_.token;
  o.build = POSEIDON_VERSION;
  o.self = std::move(self);
  o.stop = setup_.stop;
  o.detail = [display = setup_.display](const std::string& step) { display->detail(step); };
  return o;
}

void node::start_acceptor(link_identity self) {
  const handle<node> me(this);
  auto options = shaking(std::move(self));
  options.stop = nullptr;  // its guests are not waited for by this actor
  acceptor_ = setup_.network->accept(system(), *setup_.edges, std::move(options), me, me);
}

void node::listen_for_nodes() {
  phase_ = run_phase::gathering;
  address_ = to_string(setup_.network->listen(*setup_.listen));
  coordinator_ =
      poseidon::spawn<coordinator>(system(), *setup_.edges, thread_kind::shared, "coordinator",
                                   coordinator_setup{setup_.run->workers, address_});
  const handle<node> self(this);
  tell<connect_coordinator>(coordinator_, {self, self, self, self, self, self});
  setup_.display->note("listening on " + address_ + "; waiting for " +
                       plural(setup_.run->workers - 1, "node"));
  start_acceptor({address_, self_, 1});
}

void node::join_cluster() {
  phase_ = run_phase::gathering;
  // It listens before it dials, because its address is part of what it says about itself.
  address_ = to_string(setup_.network->listen({"", 0}));
  setup_.display->note("joining " + to_string(*setup_.join));
  const auto first = setup_.network->dial(*setup_.join, shaking({address_, no_worker, 0}));
  start_acceptor({address_, no_worker, 0});
  open(value(leader_), first);
  setup_.display->note("joined; waiting for the other nodes");
}

/// A link works from the moment the hands are shaken (heartbeats); it is bound to the run later.
void node::open(std::uint32_t worker, const link_connection& c) {
  const handle<node> me(this);
  link_options o;
  o.socket = c.socket;
  o.address = c.peer.listen_address;
  o.binding.self = self_;
  o.binding.peer = worker_id{worker};
  o.binding.routes.control = me;
  o.binding.routes.lost = me;
  o.rate_mbit_s = setup_.link_mbit_s;
  o.budget_mbit_s = setup_.budget_mbit_s;
  counters_[worker] = o.counters;
  setup_.view->own().opened(worker, o.counters);
  const auto name = "network_link " + std::to_string(worker);
  // A joiner opens its first link before it knows whether the run is watched.
  if (setup_.trace->enabled() || setup_.join)
    o.trace = spans_of_link(setup_.trace, name, chunk_layers_, layer_names_);
  links_[worker] = setup_.network->open(system(), *setup_.edges, name, std::move(o));
}

void node::on(const link_accepted& m) {
  if (phase_ == run_phase::failing || phase_ == run_phase::ended) return;
  const auto& peer = m.connection.peer;
  const bool first = self_ == leader_;
  if (first && phase_ == run_phase::gathering && links_.size() + 1 < setup_.run->workers) {
    const auto worker = static_cast<std::uint32_t>(links_.size() + 1);
    setup_.display->note("worker " + std::to_string(worker) + " joined from " +
                         m.connection.socket->peer());
    open(worker, m.connection);
    setup_.display->detail("membership: " + std::to_string(worker + 1) + " of " +
                           plural(setup_.run->workers, "node") + " are in; worker " +
                           std::to_string(worker) + " listens on " + peer.listen_address);
    tell<member_joined>(coordinator_, {peer.listen_address});
  } else if (!first && members_.empty()) {
    early_.push_back(m.connection);
  } else if (peer.worker != no_worker && value(peer.worker) > value(self_) &&
             value(peer.worker) < members_.size() && !links_.contains(value(peer.worker))) {
    setup_.display->detail("membership: " + name_of(peer.worker) + " has dialed this node");
    open(value(peer.worker), m.connection);
    guarded([this] { bind_if_complete(); });
  } else {
    // Joining a run that goes on is a later matter: the stranger sees the connection close.
    setup_.display->note("refused " + m.connection.socket->peer() +
                         ": training runs already with " + plural(members_.size(), "node"));
    m.connection.socket->shutdown();
  }
}

void node::on(const peer_refused& m) {
  setup_.display->note("refused: " + m.text);
}

void node::on(const view_agreed& m) {
  members_ = m.members;
  if (setup_.shares.what != share_option::kind::equal) return guarded([this] { ask_speeds(); });
  if (!routes_need_rate_) return guarded([this] { tell_view(); });
  measure_links_of_all();
}

void node::tell_view() {
  auto view = view_of(*setup_.run);
  view.members = members_;
  view.watched = setup_.shows;
  if (view.shares.empty()) view.replicas = replicas_of(setup_.node, batch_);
  describe_view(view.epoch);
  for (const auto& [worker, link] : links_) {
    view.you = worker_id{worker};
    tell<send_frame>(link, {view, {}, 0});
  }
  build();
}

void node::describe_view(std::uint64_t epoch) const {
  for (std::uint32_t w = 0; w < members_.size(); ++w)
    setup_.display->detail("view " + std::to_string(epoch) + ": " + name_of(worker_id{w}) +
                           (worker_id{w} == self_ ? ", this node" : ""));
}

void node::on(const frames::view& v, worker_id) {
  guarded([&] {
    self_ = v.you;
    members_ = v.members;
    describe_view(v.epoch);
    setup_.run = run_of(v);
    take_number_of_replicas(v);
    watched_ = v.watched;
    if (watched_) setup_.trace->watch();
    setup_.display->note("worker " + std::to_string(value(self_)) + " of " +
                         std::to_string(members_.size()));
    for (std::uint32_t w = 0; w < value(self_); ++w)
      if (worker_id{w} != leader_)
        open(w, setup_.network->dial(parse_host_port(members_[w]),
                                     shaking({address_, self_, v.epoch})));
    for (const auto& c : std::exchange(early_, {})) on(link_accepted{c});
    build();
  });
}

// -- building -------------------------------------------------------------------------------------------

void node::build() {
  phase_ = run_phase::building;
  setup_.node.worker = value(self_);
  compiled_ = compile_run(*setup_.run, setup_.node, shown());
  note_shares();
  for (const auto& line : compiled_->warnings) setup_.display->warning(line);
  for (const auto& line : compiled_->remarks) setup_.display->note(line);
  for (const auto& line : describe_run(*compiled_, *setup_.run)) setup_.display->detail(line);
  for (const auto& line : describe_partition(*compiled_, setup_.run->workers))
    setup_.display->detail(line);
  for (const auto& layer : compiled_->train.graph.layers)
    layer_names_->push_back(setup_.trace->keep(layer.name));
  began_at_ = setup_.run->first_clock;
  send_rate_ = send_rate_meter(setup_.run->workers - 1);
  spawn_graph();
  telemetry_ = poseidon::spawn<telemetry>(
      system(), *setup_.edges, thread_kind::own, "telemetry",
      telemetry_setup{self_, setup_.trace, setup_.edges, setup_.view,
                      setup_.shows && self_ == leader_ && setup_.run->workers > 1, watched_,
                      setup_.trace_file, setup_.graph_file, setup_.recording});
  show_facts();
  bind_if_complete();
}

void node::show_facts() {
  auto facts = facts_of(*compiled_, *setup_.run, decisions_);
  facts.self = value(self_);
  facts.members = members_;
  facts.first_clock = began_at_;
  if (change_)
    keep_reasons(setup_.view->read([](const auto& s) { return s.facts->routes; }),
                 "changed at clock " + std::to_string(value(change_->clock)) + ": " + change_->why,
                 facts.routes);
  setup_.view->begin(std::move(facts));
}

/// Nothing of an older graph is on its way any more: the links have nothing to ask chunk_layers_ for.
void node::spawn_graph() {
  const auto& net = compiled_->train.graph;
  chunk_layers_->clear();
  for (const auto& c : compiled_->store->cut().chunks)
    chunk_layers_->push_back(
        setup_.trace->keep(net.layers[net.parameters[c.parameter].layer].name));
  const handle<node> self(this);
  graph_ = std::make_unique<training_graph>(
      graph_context{system(), *setup_.edges, *setup_.trace, self_, setup_.budget_mbit_s > 0,
                    setup_.display, self, self, self, self, self, lasting_,
                    [view = setup_.view] { return view->own().carried(); }},
      *setup_.run, setup_.node, *compiled_);
  lasting_ = graph_->lasting();
  for (const auto& a : graph_->monitored()) monitor(a);
}

std::shared_ptr<const link_binding> node::bound_to(std::uint32_t worker) const {
  const handle<node> me(const_cast<node*>(this));
  auto b = std::make_shared<link_binding>();
  b->self = self_;
  b->peer = worker_id{worker};
  b->limits.history_slots =
      static_cast<std::uint32_t>(history_count(rule_of(setup_.run->solver.spec).kind));
  std::vector<port<chunk_landed>> gather;
  std::vector<port<history_arrived>> owners;
  for (const auto& c : compiled_->store->cut().chunks) {
    b->limits.chunk_values.push_back(static_cast<std::uint32_t>(c.count));
    b->limits.chunk_formats.push_back(c.format);
    gather.push_back(graph_->receiver_of(c.parameter));
    owners.push_back(graph_->history_owner(c.parameter));
  }
  std::map<std::uint32_t, port<factors_landed>> broadcasts;
  b->limits.factors.resize(compiled_->train.graph.layers.size());
  for (const auto& [layer, store] : graph_->factors()) {
    b->limits.factors[layer] = store->of_node(b->peer);
    broadcasts[layer] = graph_->broadcast(layer_id{layer});
  }
  b->limits.first_version = setup_.run->first_clock;
  b->limits.end_clock = static_cast<std::uint64_t>(std::max(0, setup_.run->solver.spec.max_iter()));
  b->limits.clips = setup_.run->solver.spec.clip_gradients() >= 0;
  b->limits.watches = setup_.shows && value(self_) == 0;
  if (value(self_) == 0) b->limits.reports = reports_of(*compiled_, *setup_.run, b->peer);
  b->fifo = setup_.run->solver.spec.poseidon().replay().fifo();
  b->routes.shard = graph_->shard();
  b->routes.shard_squares = graph_->shard();
  b->routes.history_owner = [owners](chunk_id id) { return owners[value(id)]; };
  b->routes.history_checkpointer = graph_->checkpoints();
  b->routes.gather = [gather](chunk_id id) { return gather[value(id)]; };
  b->routes.factors = [broadcasts](layer_id id) { return broadcasts.at(value(id)); };
  b->routes.control = me;
  if (b->limits.watches) b->routes.reports = telemetry_;
  b->routes.bound = me;
  b->routes.lost = me;
  b->routes.flow = me;
  b->landing = std::make_shared<store_landing>(compiled_->store, graph_->factors());
  peer_window_setup window{self_,
                           b->peer,
                           clock_id{setup_.run->first_clock},
                           {},
                           compiled_->store,
                           graph_->factors(),
                           staleness_of(*setup_.run)};
  const auto& net = compiled_->train.graph;
  for (std::size_t p = 0; p < net.parameters.size(); ++p)
    window.learned.push_back(is_updated(net, p));
  if (change_) window.before = change_->before;
  b->gate = std::make_shared<peer_window>(std::move(window));
  return b;
}

void node::bind_if_complete() {
  if (graph_ == nullptr || !builds() || links_.size() + 1 < setup_.run->workers) return;
  if (links_.empty()) return connect();
  for (const auto& [worker, link] : links_) tell<bind_link>(link, {bound_to(worker)});
}

/// Not before all links are bound does anybody hear that this node is ready: then all peers may send.
void node::on(const link_bound&) {
  if (builds() && ++links_bound_ == links_.size()) connect();
}

task_display node::shown() const {
  return [display = setup_.display](long_task task) { return display->working(std::move(task)); };
}

void node::connect() {
  show_first_values();
  std::vector<port<send_frame>> ports(setup_.run->workers);
  for (const auto& [worker, link] : links_) ports[worker] = link;
  graph_->connect(ports);
  tell<connect_telemetry>(telemetry_, {std::move(ports)});
  phase_ = phase_ == run_phase::rebuilding ? run_phase::resuming : run_phase::waiting;
  setup_.display->detail("membership: links to " + plural(links_.size(), "node") +
                         " and all actors stand; waiting for the others");
  if (self_ != leader_)
    to_leader(frames::member_ready{self_, compiled_->replicas});
  else if (coordinator_)
    tell<member_is_ready>(coordinator_, {self_});
  else
    on(everyone_ready{});
}

/// Everybody is bound now: values may travel.
void node::on(const everyone_ready&) {
  guarded([this] {
    if (!replicas_fit()) return;
    announce_next_change();
    if (phase_ == run_phase::resuming) return go_on();
    setup_.display->detail("membership: all are ready; sending first values, training begins");
    give_first_values();
    broadcast(frames::start_training{});
    phase_ = run_phase::training;
    take_next_change();
    tell<begin_training>(graph_->the_solver(), {clock_id{setup_.run->first_clock}});
  });
}

}  // namespace poseidon
