#include "actors/node.hpp"

#include "actors/run_codec.hpp"
#include "messages/codec.hpp"

#include <algorithm>
#include <chrono>

namespace poseidon {

namespace {

constexpr std::chrono::minutes dial_patience{1};

std::string signal_name(int signal) {
  return signal == 2 ? "SIGINT" : signal == 15 ? "SIGTERM" : "a signal";
}

}  // namespace

node::node(actor_context context, node_setup setup) : actor(context), setup_(std::move(setup)) {}

void node::started() {
  set_down_handler([this](const caf::down_msg& m) { an_actor_died(m); });
}

/// Runs a step of the start; what it throws is the user's to read, not a crash.
template <class F>
void node::guarded(F&& f) {
  try {
    f();
  } catch (const run_stopped&) {
    close({});
  } catch (const std::invalid_argument& e) {
    fail(e.what(), 2);
  } catch (const handshake_error& e) {
    fail(e.what(), 2);
  } catch (const std::exception& e) {
    fail(e.what(), 1);
  }
}

template <class D, class... Args>
handle<D> node::start(thread_kind threads, std::string name, Args&&... args) {
  auto h = spawn<D>(system(), *setup_.edges, threads, std::move(name), std::forward<Args>(args)...);
  others_.push_back(h);
  monitor(h.untyped());
  return h;
}

// -- finding the others ---------------------------------------------------------------------------------

void node::on(const start_node&) {
  guarded([this] {
    telemetry_ = start<telemetry>(
        thread_kind::own, "telemetry",
        telemetry_setup{self_, setup_.trace, setup_.edges, setup_.trace_file, setup_.graph_file});
    if (setup_.join)
      join_cluster();
    else if (setup_.run->workers > 1)
      listen_for_nodes();
    else
      build();
  });
}

void node::listen_for_nodes() {
  phase_ = phase::gathering;
  auto listener = std::make_shared<tcp_listener>(*setup_.listen);
  const auto address = to_string(host_port{setup_.listen->host, listener->port()});
  acceptor_ = start<link_acceptor>(thread_kind::own, "link_acceptor",
                                   acceptor_setup(listener, {address, worker_id{0}, 1}));
  coordinator_ = start<coordinator>(thread_kind::shared, "coordinator",
                                    coordinator_setup{setup_.run->workers, address});
  const handle<node> self(this);
  tell<connect_coordinator>(coordinator_, {self, self, self});
  setup_.display->note("listening on " + address + " for " +
                       std::to_string(setup_.run->workers - 1) + " more node" +
                       (setup_.run->workers == 2 ? "" : "s"));
}

link_acceptor_setup node::acceptor_setup(std::shared_ptr<tcp_listener> listener,
                                         link_identity self) {
  const handle<node> me(this);
  link_acceptor_setup s;
  s.listener = std::move(listener);
  s.handshake = shaking(std::move(self));
  s.accepted = me;
  s.refused = me;
  return s;
}

handshake_options node::shaking(link_identity self) const {
  handshake_options o;
  o.token = setup_.token;
  o.build = POSEIDON_VERSION;
  o.self = std::move(self);
  return o;
}

void node::on(const link_accepted& m) {
  if (phase_ == phase::gathering) {
    setup_.display->note("node " + std::to_string(joined_.size() + 1) + " joined from " +
                         m.connection.socket->peer());
    joined_.push_back(m.connection.socket);
    tell<member_joined>(coordinator_, {m.connection.peer.listen_address});
    return;
  }
  const auto who = value(m.connection.peer.worker);
  if (m.connection.peer.worker == no_worker || who <= value(self_) || who >= members_.size() ||
      connections_.contains(who)) {
    // Elastic joining is a later matter: the stranger sees the connection close.
    setup_.display->note("refused " + m.connection.socket->peer() +
                         ": training runs already with " + std::to_string(members_.size()) +
                         " nodes");
    m.connection.socket->shutdown();
    return;
  }
  connections_[who] = m.connection.socket;
  guarded([this] { connect_if_complete(); });
}

void node::on(const peer_refused& m) {
  setup_.display->note("refused: " + m.text);
}

void node::on(const view_agreed& m) {
  guarded([&] {
    members_ = m.members;
    auto view = view_of(*setup_.run);
    view.members = members_;
    for (std::size_t i = 0; i < joined_.size(); ++i) {
      const auto worker = static_cast<std::uint32_t>(i + 1);
      view.you = worker_id{worker};
      write_frame(*joined_[i], self_, view);
      connections_[worker] = joined_[i];
    }
    joined_.clear();
    build();
  });
}

void node::join_cluster() {
  // It listens before it dials, because its address is part of what it says about itself.
  auto listener = std::make_shared<tcp_listener>(host_port{"", 0});
  const auto here = to_string(host_port{"", listener->port()});
  setup_.display->note("joining " + to_string(*setup_.join));
  const auto first = dial(*setup_.join, shaking({here, no_worker, 0}), dial_patience);
  connections_[0] = first.socket;
  setup_.display->note("joined; waiting for the other nodes");
  const auto view = read_view(*first.socket, *setup_.stop_requested);
  self_ = view.you;
  members_ = view.members;
  setup_.run = run_of(view);
  acceptor_ = start<link_acceptor>(thread_kind::own, "link_acceptor",
                                   acceptor_setup(listener, {here, self_, view.epoch}));
  build();
  for (std::uint32_t w = 1; w < value(self_); ++w)
    connections_[w] =
        dial(parse_host_port(members_[w]), shaking({here, self_, view.epoch}), dial_patience)
            .socket;
  connect_if_complete();
}

// -- building -------------------------------------------------------------------------------------------

void node::build() {
  phase_ = phase::building;
  compiled_ = compile_run(*setup_.run, setup_.node);
  const handle<node> self(this);
  graph_ = std::make_unique<training_graph>(graph_context{system(), *setup_.edges, *setup_.trace,
                                                          self_, setup_.display, self, self, self},
                                            *setup_.run, setup_.node, *compiled_);
  for (const auto& a : graph_->monitored()) monitor(a);
  if (value(self_) == 0) connect_if_complete();
}

void node::connect_if_complete() {
  if (graph_ == nullptr || phase_ != phase::building ||
      connections_.size() + 1 < setup_.run->workers)
    return;
  std::vector<port<send_frame>> ports(setup_.run->workers);
  for (const auto& [worker, socket] : connections_) {
    links_[worker] = start_link(worker, socket);
    ports[worker] = links_[worker];
  }
  graph_->connect(ports);
  phase_ = phase::waiting;
  if (value(self_) == 0) give_first_values();
  ready();
}

void node::give_first_values() {
  const auto& net = compiled_->train.graph;
  const auto values = initial_values(net, setup_.run->seed, setup_.weights);
  const auto version = version_id{setup_.run->first_clock};
  const auto& cut = compiled_->store->cut();
  std::optional<solver_state> state;
  if (!setup_.resume.empty())
    state =
        read_solverstate(setup_.resume, net, history_count(rule_of(setup_.run->solver.spec).kind));
  auto owned = std::make_shared<parameter_arrays>(values);
  auto part = [&](const std::shared_ptr<parameter_arrays>& of, const chunk& c) {
    return payload{of, std::as_bytes(std::span((*of)[c.parameter]).subspan(c.offset, c.count))};
  };
  for (std::size_t id = 0; id < cut.chunks.size(); ++id) {
    const auto& c = cut.chunks[id];
    const auto chunk = chunk_id{static_cast<std::uint32_t>(id)};
    // The solver state first: a shard must have it before the first gradient can be complete.
    for (std::uint32_t slot = 0; state && slot < state->history.size(); ++slot) {
      const auto data = part(std::make_shared<parameter_arrays>(state->history[slot]), c);
      if (c.owner == 0)
        tell<history_arrived>(graph_->shard(), {self_, chunk, slot, version, data});
      else
        tell<send_frame>(links_[static_cast<std::uint32_t>(c.owner)],
                         {frames::install_history{chunk, slot}, data, 0}, data.bytes.size());
    }
    const auto data = part(owned, c);
    for (const auto& [worker, link] : links_)
      tell<send_frame>(link, {frames::fresh_parameters{chunk, version}, data, 1},
                       data.bytes.size());
    const auto to = compiled_->store->landing(id);
    std::copy_n((*owned)[c.parameter].begin() + static_cast<std::ptrdiff_t>(c.offset), c.count,
                to.begin());
    tell<chunk_landed>(graph_->gather(c.parameter), {chunk, version});
  }
}

void node::ready() {
  if (value(self_) != 0)
    tell<send_frame>(links_.at(0), {frames::member_ready{self_}, {}, 0});
  else if (coordinator_)
    tell<member_is_ready>(coordinator_, {self_});
  else
    on(everyone_ready{});
}

void node::on(const everyone_ready&) {
  broadcast(frames::start_training{});
  phase_ = phase::training;
  tell<begin_training>(graph_->the_solver(), {clock_id{setup_.run->first_clock}});
}

// -- training -------------------------------------------------------------------------------------------

void node::broadcast(const frame_header& header) {
  for (const auto& [worker, link] : links_) tell<send_frame>(link, {header, {}, 0});
}

void node::on(const control_arrived& m) {
  if (phase_ == phase::closing || phase_ == phase::ended) return;
  if (const auto* f = std::get_if<frames::member_ready>(&m.header)) {
    if (coordinator_) tell<member_is_ready>(coordinator_, {f->worker});
  } else if (std::holds_alternative<frames::start_training>(m.header)) {
    phase_ = phase::training;
    tell<begin_training>(graph_->the_solver(), {clock_id{setup_.run->first_clock}});
  } else if (const auto* d = std::get_if<frames::worker_done>(&m.header)) {
    if (coordinator_) tell<member_is_done>(coordinator_, {d->worker});
  } else if (const auto* r = std::get_if<frames::stop_requested>(&m.header)) {
    if (value(self_) == 0) tell<stop_soon>(graph_->the_solver(), {r->reason});
  } else if (const auto* s = std::get_if<frames::stop_after>(&m.header)) {
    end_reason_ = s->reason;
    tell<finish_after>(graph_->the_solver(), {s->clock, s->reason});
  } else if (std::holds_alternative<frames::gather_history>(m.header)) {
    tell<control_arrived>(graph_->shard(), m);
  } else if (std::holds_alternative<frames::worker_report>(m.header)) {
    tell<control_arrived>(graph_->the_solver(), m);
  }
}

void node::on(const stop_decided& m) {
  end_reason_ = m.reason;
  broadcast(frames::stop_after{m.clock, m.reason});
}

void node::on(const training_done& m) {
  if (phase_ != phase::training) return;
  if (value(self_) != 0)
    tell<send_frame>(links_.at(0), {frames::worker_done{self_, m.version}, {}, 0});
  else if (coordinator_)
    tell<member_is_done>(coordinator_, {self_});
  else
    on(everyone_done{});
}

void node::on(const everyone_done&) {
  close(result_);
}

void node::on(const interrupted& m) {
  const auto who = "worker " + std::to_string(value(self_)) + " got " + signal_name(m.signal);
  result_.exit_code = 128 + m.signal;
  if (phase_ != phase::training) {
    close(result_);
  } else if (value(self_) == 0) {
    tell<stop_soon>(graph_->the_solver(), {who});
  } else {
    tell<send_frame>(links_.at(0), {frames::stop_requested{who}, {}, 0});
  }
}

// -- ends -----------------------------------------------------------------------------------------------

void node::on(const link_lost& m) {
  if (phase_ == phase::closing || phase_ == phase::ended) return;
  links_.erase(value(m.peer));
  if (m.on_purpose && value(m.peer) == 0) {
    // Worker 0 closes when everybody is done, or because something went wrong there.
    if (!m.why.empty()) result_ = {result_.exit_code != 0 ? result_.exit_code : 3, m.why};
    close(result_);
    return;
  }
  fail(m.why, 3);
}

void node::on(const training_failed& m) {
  fail(m.text, m.exit_code);
}

void node::an_actor_died(const caf::down_msg& m) {
  if (m.reason == caf::exit_reason::normal || phase_ == phase::closing || phase_ == phase::ended)
    return;
  fail(system().render(m.reason), 1);
}

std::uint64_t node::whole_version() const {
  std::uint64_t version = ~std::uint64_t{0};
  const auto& net = compiled_->train.graph;
  for (std::size_t p = 0; p < net.parameters.size(); ++p)
    if (net.parameters[p].lr_mult != 0) version = std::min(version, compiled_->store->version(p));
  return version;
}

void node::fail(std::string text, int exit_code) {
  if (phase_ == phase::failing || phase_ == phase::closing || phase_ == phase::ended) return;
  const bool was_training = phase_ == phase::training;
  result_ = {exit_code, std::move(text)};
  // A lost peer takes no parameters with it: the lowest survivor writes what stands. After a NaN there is
  // nothing worth writing.
  const bool lowest = links_.empty() || value(self_) < links_.begin()->first;
  if (exit_code == 3 && was_training && lowest && whole_version() > setup_.run->first_clock) {
    phase_ = phase::failing;
    const handle<node> self(this);
    tell<write_snapshot>(graph_->checkpoints(), {version_id{whole_version()}, false, {}, self});
    return;
  }
  close(result_);
}

void node::on(const snapshot_written& m) {
  setup_.display->snapshot(value(m.version), m.path, m.error);
  close(result_);
}

void node::close(node_result result) {
  if (phase_ == phase::closing || phase_ == phase::ended) return;
  phase_ = phase::closing;
  for (const auto& [worker, link] : links_) tell<close_link>(link, {result.error});
  if (graph_ != nullptr)
    for (const auto& a : graph_->all()) tell<shut_down>(a, {});
  for (const auto& a : others_) tell<shut_down>(a, {});
  phase_ = phase::ended;
  setup_.ended(std::move(result));
  quit();
}

}  // namespace poseidon
