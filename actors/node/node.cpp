#include "actors/node/node.hpp"

#include <csignal>

namespace poseidon {

namespace {

std::string signal_name(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : std::to_string(signal);
}

}  // namespace

node::node(actor_context context, node_setup setup)
    : actor(context), setup_(std::move(setup)), member_(membership()), run_(setup_) {}

void node::started() {
  set_down_handler([this](const caf::down_msg& m) { an_actor_died(m); });
  set_exception_handler([this](std::exception_ptr& thrown) { return a_handler_threw(thrown); });
}

// -- training -------------------------------------------------------------------------------------------

void node::on(const control_arrived& m) {
  if (phase_ == run_phase::failing || phase_ == run_phase::ended) return;
  if (const auto why = refusal_of(m.header, m.from, {view().self, view().leader, phase_}))
    return refuse(m.from, *why);
  std::visit(
      [&](const auto& f) {
        if constexpr (reaches_node<decltype(f)>) on(f, m.from);
      },
      m.header);
}

/// The link's end is the run's: the peer hears why, and so does the user.
void node::refuse(worker_id from, const std::string& why) {
  const auto link = member_.links().find(from);
  if (link != member_.links().end())
    tell<close_link>(link->second, {view().name_of(from) + " sent a bad frame: " + why});
}

void node::on(const frames::probe& f, worker_id from) {
  if (f.last) member_.send(from, {frames::probe_heard{f.round}, {}, 0});
}

void node::on(const frames::watch& f, worker_id from) {
  tell<control_arrived>(telemetry_, {from, f});
}

void node::on(const frames::gather_history& f, worker_id from) {
  tell<control_arrived>(run_.graph().parameters().shard(), {from, f});
}

void node::on(const frames::worker_report& f, worker_id from) {
  tell<control_arrived>(run_.the_solver(), {from, f});
}

// -- the last clock -------------------------------------------------------------------------------------

void node::on(const stop_decided& m) {
  setup_.display->note("ending after clock " + std::to_string(value(m.clock)) + ": " + m.reason);
  member_.broadcast(frames::stop_after{m.clock, m.reason});
}

void node::on(const frames::stop_requested& f, worker_id) {
  tell<stop_soon>(run_.the_solver(), {f.reason});
}

void node::on(const frames::stop_after& f, worker_id) {
  setup_.display->note("ending after clock " + std::to_string(value(f.clock)) + ": " + f.reason);
  tell<finish_after>(run_.the_solver(), {f.clock, f.reason});
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
  if (!view().leads())
    member_.to_leader(frames::worker_done{view().self, m.version});
  else if (leading_)
    leading_->done(view().self);
  else
    on(everyone_done{});
}

void node::on(const frames::worker_done& f, worker_id) {
  leading_->on(f);
}

void node::on(const everyone_done&) {
  close(result_);
}

void node::on(const interrupted& m) {
  // It ends already, and writes what stands after a peer was lost; a second signal ends the process.
  if (phase_ == run_phase::failing) return;
  result_.exit_code = 128 + m.signal;
  const auto self = view().self;
  const auto why = "worker " + (self == no_worker ? "?" : std::to_string(value(self))) + " got " +
                   signal_name(m.signal);
  if (!trains()) {
    goodbye_ = why;  // the others wait for this node: they hear why it goes
    close(result_);
  } else if (view().leads()) {
    tell<stop_soon>(run_.the_solver(), {why});
  } else {
    member_.to_leader(frames::stop_requested{why});
  }
}

// -- ends -----------------------------------------------------------------------------------------------

void node::on(const link_lost& m) {
  if (phase_ == run_phase::ended) return;
  setup_.display->detail("link lost" + std::string(m.on_purpose ? " on purpose: " : ": ") + m.why);
  member_.lost(m.peer);
  if (!m.on_purpose) setup_.view->lost(m.peer, m.why);
  if (phase_ == run_phase::failing) return;
  if (!m.on_purpose || m.reason)
    fail(m.why, 3);
  else if (m.peer == view().leader)
    close(result_);  // the leader says goodbye when all are done
  // Another node heard that before this one did: the leader's goodbye is on its way.
}

void node::on(const training_failed& m) {
  fail(m.text, m.exit_code);
}

void node::an_actor_died(const caf::down_msg& m) {
  if (phase_ == run_phase::ended) return;
  if (m.reason == caf::exit_reason::normal) {
    if (phase_ == run_phase::changing && change_.left(m.source)) guarded([this] { rebuild(); });
    return;
  }
  fail(system().render(m.reason), 1);
  // The snapshot that the node has waited for since a peer was lost will not come.
  if (phase_ == run_phase::failing &&
      m.source == caf::actor_cast<caf::actor_addr>(run_.checkpoints().untyped()))
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

/// Runs a step; what it throws is the user's to read, not a crash.
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

void node::fail(std::string text, int exit_code) {
  if (phase_ == run_phase::failing) setup_.display->detail("while it ends: " + text);
  if (phase_ == run_phase::failing || phase_ == run_phase::ended) return;
  result_.exit_code = exit_code;
  result_.error = std::move(text);
  goodbye_ = result_.error;
  // A lost peer takes no parameters with it: the lowest survivor writes what stands. After a NaN there is
  // nothing worth writing.
  const auto& links = member_.links();
  const bool lowest = links.empty() || view().self < links.begin()->first;
  const auto version = trains() ? run_.trained_version() : std::nullopt;
  if (exit_code != 3 || !lowest || !version || setup_.run->solver.spec.poseidon().has_replay())
    return close(result_);
  phase_ = run_phase::failing;
  const handle<node> self(this);
  tell<write_snapshot>(run_.checkpoints(), {*version, 0, 0, false, {}, self});
}

void node::on(const snapshot_written& m) {
  setup_.display->snapshot(value(m.version), m.path, m.error);
  close(result_);
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
  member_.describe_traffic();
  phase_ = run_phase::ended;
  setup_.view->ended(result.error);  // before its actors end: they stay to be seen
  tell<stop_accepting>(member_.acceptor(), {});
  for (const auto& [worker, link] : member_.links()) tell<close_link>(link, {goodbye_});
  // Past what waits in their mailboxes: of kernels that nobody needs any more there may be several passes.
  for (const auto& a : run_.all()) tell_urgent<shut_down>(a, {});
  if (leading_) leading_->end();
  tell<shut_down>(telemetry_, {});
  first_values_shown_.reset();
  // Handles are references, and some of those actors refer to this one: a circle would keep all of them.
  result.compiled = run_.drop();
  setup_.ended(std::move(result));
  change_ = {};
  member_.drop();
  leading_.reset();
  telemetry_ = {};
}

}  // namespace poseidon
