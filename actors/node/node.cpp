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
  set_exception_handler([this](std::exception_ptr& thrown) { return a_handler_threw(thrown); });
}

// -- training -------------------------------------------------------------------------------------------

void node::broadcast(const frame_header& header) {
  for (const auto& [worker, link] : links_) tell<send_frame>(link, {header, {}, 0});
}

void node::to_leader(const frame_header& header) {
  const auto link = links_.find(value(leader_));
  if (link != links_.end()) tell<send_frame>(link->second, {header, {}, 0});
}

void node::on(const control_arrived& m) {
  if (phase_ == run_phase::failing || phase_ == run_phase::ended) return;
  if (const auto why = refusal_of(m.header, m.from, {self_, leader_, phase_}))
    return refuse(m.from, *why);
  std::visit(
      [&](const auto& f) {
        if constexpr (reaches_node<decltype(f)>) on(f, m.from);
      },
      m.header);
}

/// The link's end is the run's: the peer hears why, and so does the user.
void node::refuse(worker_id from, const std::string& why) {
  const auto link = links_.find(value(from));
  if (link != links_.end())
    tell<close_link>(link->second, {name_of(from) + " sent a bad frame: " + why});
}

void node::on(const frames::member_ready& f, worker_id) {
  setup_.display->detail("membership: " + name_of(f.worker) + " is ready");
  replicas_[f.worker] = f.replicas;
  tell<member_is_ready>(coordinator_, {f.worker});
}

void node::on(const frames::worker_done& f, worker_id) {
  setup_.display->detail("membership: " + name_of(f.worker) + " is done, at version " +
                         std::to_string(value(f.version)));
  tell<member_is_done>(coordinator_, {f.worker});
}

void node::on(const frames::probe& f, worker_id from) {
  const auto back = links_.find(value(from));
  if (f.last && back != links_.end())
    tell<send_frame>(back->second, {frames::probe_heard{f.round}, {}, 0});
}

void node::on(const frames::probe_heard& f, worker_id from) {
  if (timing_)
    take_timing(from, f.round);
  else
    tell<probe_answered>(selector_, {from, f.round});
}

void node::on(const frames::watch& f, worker_id from) {
  tell<control_arrived>(telemetry_, {from, f});
}

void node::on(const frames::start_training&, worker_id) {
  if (phase_ == run_phase::resuming) return guarded([this] { go_on(); });
  phase_ = run_phase::training;
  setup_.display->detail("membership: all are ready, training begins");
  take_next_change();
  tell<begin_training>(lasting_.the_solver, {clock_id{setup_.run->first_clock}});
}

void node::on(const frames::stop_requested& f, worker_id) {
  tell<stop_soon>(lasting_.the_solver, {f.reason});
}

void node::on(const frames::stop_after& f, worker_id) {
  setup_.display->note("ending after clock " + std::to_string(value(f.clock)) + ": " + f.reason);
  tell<finish_after>(lasting_.the_solver, {f.clock, f.reason});
}

void node::on(const frames::worker_paused& f, worker_id) {
  tell<member_paused>(coordinator_, {f.worker, f.clock, f.drained});
}

void node::on(const frames::send_rate& f, worker_id from) {
  tell<send_rate_measured>(selector_, {from, f.mbit_s, f.probed});
}

void node::on(const frames::gather_history& f, worker_id from) {
  tell<control_arrived>(graph_->shard(), {from, f});
}

void node::on(const frames::worker_report& f, worker_id from) {
  tell<control_arrived>(lasting_.the_solver, {from, f});
}

void node::on(const stop_decided& m) {
  setup_.display->note("ending after clock " + std::to_string(value(m.clock)) + ": " + m.reason);
  broadcast(frames::stop_after{m.clock, m.reason});
}

void node::on(const training_done& m) {
  if (phase_ != run_phase::training) return;
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
  if (self_ != leader_)
    to_leader(frames::worker_done{self_, m.version});
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
  if (phase_ == run_phase::failing) return;
  result_.exit_code = 128 + m.signal;
  const auto who = "worker " + (self_ == no_worker ? "?" : std::to_string(value(self_))) + " got " +
                   signal_name(m.signal);
  if (!trains()) {
    goodbye_ = who;  // the others wait for this node: they hear why it goes
    close(result_);
    return;
  }
  if (self_ == leader_)
    tell<stop_soon>(lasting_.the_solver, {who});
  else
    to_leader(frames::stop_requested{who});
}

// -- ends -----------------------------------------------------------------------------------------------

void node::on(const link_lost& m) {
  if (phase_ == run_phase::ended) return;
  setup_.display->detail("link lost" + std::string(m.on_purpose ? " on purpose: " : ": ") + m.why);
  links_.erase(value(m.peer));
  if (!m.on_purpose) setup_.view->lost(m.peer, m.why);
  if (phase_ == run_phase::failing) return;
  if (!m.on_purpose || m.reason)
    fail(m.why, 3);
  else if (m.peer == leader_)
    close(result_);  // the leader says goodbye when all are done
  // Another node heard that before this one did: the leader's goodbye is on its way.
}

void node::on(const training_failed& m) {
  fail(m.text, m.exit_code);
}

void node::an_actor_died(const caf::down_msg& m) {
  if (phase_ == run_phase::ended) return;
  if (m.reason == caf::exit_reason::normal) return one_has_left(m.source);
  fail(system().render(m.reason), 1);
  // The snapshot that the node has waited for since a peer was lost will not come.
  if (phase_ == run_phase::failing &&
      m.source == caf::actor_cast<caf::actor_addr>(lasting_.checkpoints.untyped()))
    close(result_);
}

/// There is no actor above this one that would hear of it.
caf::error node::a_handler_threw(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    result_.error = std::string("node: ") + e.what();
  } catch (...) {
    result_.error = "node: unknown exception";
  }
  result_.exit_code = 1;
  goodbye_ = result_.error;
  close(result_);
  return caf::exit_reason::normal;
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
  if (phase_ == run_phase::failing) setup_.display->detail("while it ends: " + text);
  if (phase_ == run_phase::failing || phase_ == run_phase::ended) return;
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
    phase_ = run_phase::failing;
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
  if (phase_ == run_phase::ended) return;
  end_run(std::move(result));
  quit();
}

/// Told to exit by another actor than its own: the actors that it has spawned end with it.
void node::on_exit() {
  if (phase_ != run_phase::ended) end_run({1, "internal error: the node was stopped", {}});
}

void node::end_run(node_result result) {
  describe_traffic();
  phase_ = run_phase::ended;
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
}

}  // namespace poseidon
