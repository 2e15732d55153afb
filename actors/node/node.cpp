#include "actors/node/node.hpp"

#include "actors/run/run_description.hpp"

#include <algorithm>
#include <csignal>

namespace poseidon {

namespace {

std::string signal_name(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : std::to_string(signal);
}

}  // namespace

node::node(actor_context context, node_setup setup) : actor(context), setup_(std::move(setup)) {}

void node::started() {
  set_down_handler([this](const caf::down_msg& m) { an_actor_died(m); });
}

// -- training -------------------------------------------------------------------------------------------

void node::broadcast(const frame_header& header) {
  for (const auto& [worker, link] : links_) tell<send_frame>(link, {header, {}, 0});
}

void node::on(const control_arrived& m) {
  if (phase_ == phase::failing || phase_ == phase::ended) return;
  const bool first = value(self_) == 0;
  if (const auto* v = std::get_if<frames::view>(&m.header)) {
    take_view(*v);
  } else if (const auto* f = std::get_if<frames::member_ready>(&m.header)) {
    setup_.display->detail("membership: " + name_of(f->worker) + " is ready");
    replicas_[f->worker] = f->replicas;
    if (coordinator_) tell<member_is_ready>(coordinator_, {f->worker});
  } else if (const auto* d = std::get_if<frames::worker_done>(&m.header)) {
    setup_.display->detail("membership: " + name_of(d->worker) + " is done, at version " +
                           std::to_string(value(d->version)));
    if (coordinator_) tell<member_is_done>(coordinator_, {d->worker});
  } else if (const auto* p = std::get_if<frames::probe>(&m.header)) {
    const auto back = links_.find(value(m.from));
    if (p->last && back != links_.end())
      tell<send_frame>(back->second, {frames::probe_heard{p->round}, {}, 0});
  } else if (const auto* h = std::get_if<frames::probe_heard>(&m.header)) {
    if (timing_)
      take_timing(m.from, h->round);
    else if (selector_)
      tell<probe_answered>(selector_, {m.from, h->round});
  } else if (const auto* t = std::get_if<frames::time_net>(&m.header)) {
    if (value(m.from) == 0) guarded([&] { time_own_net(*t); });
  } else if (const auto* n = std::get_if<frames::net_timed>(&m.header)) {
    guarded([&] { take_speed(m.from, {n->replicas, n->samples_s, 0}); });
  } else if (std::holds_alternative<frames::watch>(m.header)) {
    if (telemetry_) tell<control_arrived>(telemetry_, m);
  } else if (graph_ == nullptr) {
    return;  // the rest concerns a run that this node has not built
  } else if (std::holds_alternative<frames::start_training>(m.header)) {
    if (phase_ != phase::waiting) return;
    if (change_) return guarded([this] { go_on(); });
    phase_ = phase::training;
    setup_.display->detail("membership: all are ready, training begins");
    take_next_change();
    tell<begin_training>(graph_->the_solver(), {clock_id{setup_.run->first_clock}});
  } else if (const auto* r = std::get_if<frames::stop_requested>(&m.header)) {
    if (first) tell<stop_soon>(graph_->the_solver(), {r->reason});
  } else if (const auto* s = std::get_if<frames::stop_after>(&m.header)) {
    setup_.display->note("ending after clock " + std::to_string(value(s->clock)) + ": " +
                         s->reason);
    tell<finish_after>(graph_->the_solver(), {s->clock, s->reason});
  } else if (const auto* at = std::get_if<frames::worker_paused>(&m.header)) {
    if (coordinator_) tell<member_paused>(coordinator_, {at->worker, at->clock, at->drained});
  } else if (const auto* o = std::get_if<frames::send_rate>(&m.header)) {
    if (selector_) tell<send_rate_measured>(selector_, {m.from, o->mbit_s, o->probed});
  } else if (std::holds_alternative<frames::hold_training>(m.header)) {
    if (value(m.from) == 0) hold();
  } else if (const auto* c = std::get_if<frames::change_routes>(&m.header)) {
    if (value(m.from) == 0) take_change(*c);
  } else if (std::holds_alternative<frames::rebuild_graph>(m.header)) {
    if (value(m.from) == 0) leave_graph();
  } else if (std::holds_alternative<frames::gather_history>(m.header)) {
    tell<control_arrived>(graph_->shard(), m);
  } else if (std::holds_alternative<frames::worker_report>(m.header)) {
    tell<control_arrived>(graph_->the_solver(), m);
  }
}

void node::on(const stop_decided& m) {
  setup_.display->note("ending after clock " + std::to_string(value(m.clock)) + ": " + m.reason);
  broadcast(frames::stop_after{m.clock, m.reason});
}

void node::on(const training_done& m) {
  if (phase_ != phase::training) return;
  setup_.display->detail("membership: this node is done, at version " +
                         std::to_string(value(m.version)) + ", " + std::to_string(m.images) +
                         " images");
  if (!m.snapshot_error.empty()) {
    // The others have trained as planned: this is no reason for them to fail.
    result_.exit_code = 1;
    result_.error = "the run ends without its last snapshot, of clock " +
                    std::to_string(value(m.version)) + ": " + m.snapshot_error +
                    " What was trained since the snapshot before it is lost.";
  }
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
  // It ends already, and writes what stands after a peer was lost; a second signal ends the process.
  if (phase_ == phase::failing) return;
  result_.exit_code = 128 + m.signal;
  const auto who = "worker " + (self_ == no_worker ? "?" : std::to_string(value(self_))) + " got " +
                   signal_name(m.signal);
  if (!trains()) {
    goodbye_ = who;  // the others wait for this node: they hear why it goes
    close(result_);
    return;
  }
  if (value(self_) == 0)
    tell<stop_soon>(lasting_.the_solver, {who});
  else
    tell<send_frame>(links_.at(0), {frames::stop_requested{who}, {}, 0});
}

// -- ends -----------------------------------------------------------------------------------------------

void node::on(const link_lost& m) {
  if (phase_ == phase::ended) return;
  setup_.display->detail("link lost" + std::string(m.on_purpose ? " on purpose: " : ": ") + m.why);
  links_.erase(value(m.peer));
  if (!m.on_purpose) setup_.view->lost(m.peer, m.why);
  if (phase_ == phase::failing) return;
  if (!m.on_purpose || m.reason)
    fail(m.why, 3);
  else if (value(m.peer) == 0)
    close(result_);  // worker 0 says goodbye when everybody is done
  // Another one heard that before this node did: worker 0's goodbye is on its way.
}

void node::on(const training_failed& m) {
  fail(m.text, m.exit_code);
}

void node::an_actor_died(const caf::down_msg& m) {
  if (phase_ == phase::ended) return;
  if (m.reason == caf::exit_reason::normal) return one_has_left(m.source);
  fail(system().render(m.reason), 1);
}

/// The newest version that every parameter has here that training changes.
std::uint64_t node::whole_version() const {
  std::uint64_t version = ~std::uint64_t{0};
  const auto& net = compiled_->train.graph;
  for (std::size_t p = 0; p < net.parameters.size(); ++p)
    if (is_updated(net, p)) version = std::min(version, compiled_->store->version(p));
  return version;
}

void node::fail(std::string text, int exit_code) {
  if (phase_ == phase::failing || phase_ == phase::ended) return;
  const bool was_training = trains() && compiled_ != nullptr;
  result_.exit_code = exit_code;
  result_.error = std::move(text);
  goodbye_ = result_.error;
  // A lost peer takes no parameters with it: the lowest survivor writes what stands. After a NaN there is
  // nothing worth writing.
  const bool lowest = links_.empty() || value(self_) < links_.begin()->first;
  const auto worth = [this] {
    return !setup_.run->solver.spec.poseidon().has_replay() && whole_version() > began_at_;
  };
  if (exit_code == 3 && was_training && lowest && worth()) {
    phase_ = phase::failing;
    const handle<node> self(this);
    tell<write_snapshot>(lasting_.checkpoints,
                         {version_id{whole_version()}, 0, 0, false, {}, self});
    return;
  }
  close(result_);
}

void node::on(const snapshot_written& m) {
  setup_.display->snapshot(value(m.version), m.path, m.error);
  close(result_);
}

void node::describe_traffic() {
  for (const auto& [worker, counters] : counters_)
    setup_.display->detail(poseidon::describe_traffic(name_of(worker_id{worker}), *counters));
}

std::string node::name_of(worker_id w) const {
  return value(w) < members_.size() ? peer_name(w, members_[value(w)])
                                    : "worker " + std::to_string(value(w));
}

void node::close(node_result result) {
  if (phase_ == phase::ended) return;
  describe_traffic();
  phase_ = phase::ended;
  setup_.view->ended(result.error);  // before its actors end: they stay to be seen
  if (acceptor_) tell<stop_accepting>(acceptor_, {});
  for (const auto& [worker, link] : links_) tell<close_link>(link, {goodbye_});
  if (graph_ != nullptr) {
    // Past what waits in their mailboxes: of kernels that nobody needs any more there may be several passes.
    for (const auto& a : graph_->all()) tell_urgent<shut_down>(a, {});
  } else {  // it could not be built anew
    if (lasting_.the_solver) tell<shut_down>(lasting_.the_solver, {});
    if (lasting_.checkpoints) tell<shut_down>(lasting_.checkpoints, {});
  }
  if (coordinator_) tell<shut_down>(coordinator_, {});
  if (selector_) tell<shut_down>(selector_, {});
  if (telemetry_) tell<shut_down>(telemetry_, {});
  first_values_shown_.reset();
  result.compiled = std::move(compiled_);
  setup_.ended(std::move(result));
  // Handles are references, and some of those actors refer to this one: a circle would keep all of them.
  graph_.reset();
  lasting_ = {};
  change_.reset();
  links_.clear();
  early_.clear();
  acceptor_ = {};
  coordinator_ = {};
  selector_ = {};
  telemetry_ = {};
  quit();
}

}  // namespace poseidon
