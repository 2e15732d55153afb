#include "actors/node/run_end.hpp"

#include "actors/node/node.hpp"
#include "models/words.hpp"

#include <csignal>
#include <utility>

namespace poseidon {

namespace {

std::string signal_name(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : std::to_string(signal);
}

std::string next_sentence(const std::string& text) {
  return text.ends_with('.') ? " " : ". ";
}

}  // namespace

bool run_end::fail(std::string text, int exit_code, const std::string& suffix,
                   frames::goodbye::cause of) {
  const auto& setup = core_.setup;
  if (core_.change.at() == node_stage::failing) setup.display->detail("while it ends: " + text);
  if (core_.has_ended()) return false;
  result_.exit_code = exit_code;
  result_.error = in_words(std::move(text));
  goodbye_ = {result_.error, of};
  // A lost peer takes no parameters with it: the lowest survivor writes what stands. After a NaN there is
  // nothing worth writing.
  std::optional<seat_id> lower;  // that this node still has a link to
  for (const auto& [seat, link] : core_.members.links())
    if (core_.view().has(seat) && seat < core_.view().seat && !lower) lower = seat;
  const auto version = core_.trains() ? core_.run.trained_version() : std::nullopt;
  // Nobody trains on under the run's names: what waits to be written is right.
  constexpr int diverged = 4;
  if (version && suffix.empty() && (exit_code == 3 || exit_code == diverged))
    core_.as_node.tell<floor_reached>(core_.run.checkpoints(), {*version});
  // A program has its own parameters.
  if (exit_code != 3 || !version || setup.around || setup.run->solver.spec.poseidon().has_replay())
    return true;
  if (lower) {
    result_.error += next_sentence(result_.error) + core_.view().name_of(*lower) +
                     " keeps what was trained, and says how to go on.";
    return true;
  }
  core_.change.fails();
  core_.as_node.tell<write_snapshot>(core_.run.checkpoints(), {.version = *version,
                                                               .with_state = false,
                                                               .copied = {},
                                                               .written = core_.as_node.self(),
                                                               .suffix = suffix});
  return false;
}

bool run_end::fail_by(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::invalid_argument& e) {
    return fail(e.what(), 2);
  } catch (const handshake_error& e) {
    return fail(e.what(), 2);
  } catch (const socket_error& e) {
    // `interrupted` is the next message, and ends it.
    return e.error != ECANCELED && fail(e.what(), 2);
  } catch (const std::exception& e) {
    return fail(e.what(), 1);
  }
}

/// The others write their own snapshots, of what they train from now on.
bool run_end::left_out(std::string why) {
  if (core_.has_ended()) return false;
  result_.exit_code = 3;
  result_.error = in_words(std::move(why));
  for (const auto& m : core_.newest_members())
    if (m.seat != core_.view().seat) result_.others.push_back(parse_host_port(m.address));
  goodbye_ = {result_.error, frames::goodbye::cause::writer};
  return true;
}

/// Those that have not heard yet that the others go on do so, too.
void run_end::released() {
  core_.setup.display->note("left the run; the others go on");
  goodbye_ = {"", frames::goodbye::cause::released};
}

void run_end::threw(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    result_.error = std::string("node: ") + e.what();
  } catch (...) {
    result_.error = "node: unknown exception";
  }
  result_.exit_code = 1;
  goodbye_ = {result_.error};
}

/// The others have trained as planned: this is no reason for them to fail.
void run_end::without_snapshot(version_id of, const std::string& error) {
  result_.exit_code = 1;
  result_.error = "the run ends without its last snapshot, of iteration " +
                  std::to_string(iteration_of(*core_.setup.run, value(of))) + ": " + error +
                  " What was trained since the snapshot before it is lost.";
}

std::string run_end::command_with(const std::string& option) const {
  const auto& command = core_.setup.command;
  return (command.empty() ? "the first node's command and" : command) + " " + option;
}

void run_end::kept(const snapshot_written& m) {
  if (m.error.empty())
    result_.error += next_sentence(result_.error) + "Kept: weights of iteration " +
                     std::to_string(iteration_of(*core_.setup.run, value(m.version))) + " (" +
                     m.path +
                     "); solver state is gone: resume begins momentum and the count of iterations "
                     "anew. Go on with: " +
                     command_with("--weights " + m.path);
  else
    result_.error += next_sentence(result_.error) + "Nothing was kept: " + m.error;
  if (!m.newest_state.empty())
    result_.error += next_sentence(result_.error) +
                     "The last whole snapshot: " + command_with("--snapshot " + m.newest_state);
}

void run_end::note_stop(version_id version, const std::string& reason) const {
  const auto& run = *core_.setup.run;
  const auto end = iteration_of(run, value(version));
  core_.setup.display->note((value(version) <= run.first_clock
                                 ? "ending before the first iteration"
                                 : "ending after iteration " + std::to_string(end - 1)) +
                            ": " + reason);
}

bool run_end::joins_now() const {
  const auto& view = core_.view();
  return !core_.trains() && !core_.has_ended() && !view.is_first() && view.has(view.seat);
}

bool run_end::interrupted(int signal) {
  // It ends already, and writes what stands after a peer was lost; a second signal ends the process.
  if (core_.change.at() == node_stage::failing) return false;
  result_.exit_code = 128 + signal;
  const auto seat = core_.view().seat;
  const auto why = "worker " + (seat == no_seat ? "?" : std::to_string(value(seat))) + " got " +
                   signal_name(signal);
  if (joins_now()) {
    wants_end_ = why;
    return false;
  }
  if (!core_.trains()) {
    core_.setup.display->warning("ended before training began: this node got " +
                                 signal_name(signal));
    goodbye_ = {why};  // the others wait for this node: they hear why it goes
    return true;
  }
  wants_end_ = why;
  ask_for_end();
  return false;
}

void run_end::ask_for_end() const {
  if (core_.view().leads())
    core_.as_node.tell<stop_soon>(core_.run.the_trainer().stop, {wants_end_});
  else
    core_.members.to_leader(frames::stop_requested{wants_end_});
}

void run_end::say_again() const {
  if (!wants_end_.empty()) ask_for_end();
}

bool run_end::leaves(int signal) {
  const auto& view = core_.view();
  // Programs, and nodes with data of their own, cannot be done without.
  const bool can = (core_.trains() || joins_now()) && view.members.size() > 1 &&
                   !core_.setup.around && !core_.setup.node.own_data && !core_.done;
  if (!can) return false;
  result_.exit_code = signal == 0 ? 0 : 128 + signal;
  leaving_ = true;
  core_.setup.display->note("leaving: the other nodes go on without this one");
  return true;
}

bool run_end::takes_leave() {
  if (!core_.trains()) return false;
  const auto epoch = core_.view().epoch;
  return leaving_ && std::exchange(took_leave_in_, epoch) != epoch;
}

void run_end::keep_snapshot() const {
  auto& display = *core_.setup.display;
  if (!core_.trains()) {
    display.note("no snapshot: training has not begun");
  } else if (core_.view().leads()) {
    display.note("a snapshot after this iteration: SIGHUP");
    core_.as_node.tell<snapshot_soon>(core_.run.the_trainer().snapshot, {});
  } else {
    display.note("asked " + core_.view().name_of(core_.view().leader()) +
                 " for a snapshot: SIGHUP");
    core_.members.to_leader(frames::snapshot_requested{});
  }
}

bool run_end::lost(const link_lost& m) {
  const auto& setup = core_.setup;
  setup.display->detail("link lost" + std::string(m.on_purpose ? " on purpose: " : ": ") + m.why);
  core_.members.lost(m.peer, m.why);
  const auto& view = core_.view();
  if (!m.on_purpose && (view.members.empty() || view.has(m.peer)))
    setup.records.view->lost(m.peer, m.why);
  if (core_.change.at() == node_stage::failing) return false;
  // It has handed over what it had, or the run is over before anybody has asked for that. Another one that has left may go before it, and
  // says goodbye to it, too.
  if (core_.change.at() == node_stage::parting && m.on_purpose && view.has(m.peer) &&
      (core_.done || !m.reason))
    return m.peer == view.leader() || (core_.done && !m.reason);
  // It never was a member, or has left: then it says goodbye when it has given its solver state away. To another node that
  // leaves, too, it gives none.
  if (!view.members.empty() && !view.has(m.peer)) {
    const bool gave_all = (m.on_purpose && !m.reason) || !view.has(view.seat);
    return view.had(m.peer) && !gave_all &&
           fail(m.why + ", while it was leaving: its part of the solver state may be lost", 3);
  }
  // Whoever is not let in was started with something wrong, or at the wrong place.
  const bool refused = m.of == frames::goodbye::cause::refused && !core_.trains();
  if (!m.on_purpose || m.reason) return fail(m.why, refused ? 2 : 3);
  if (!core_.done)
    return fail(
        m.why + " before the end of the run, without a reason. Its own last lines may say more.",
        3);
  // The leader says goodbye when all are done. Another node heard that before this one did: the leader's goodbye is on its
  // way.
  return m.peer == core_.view().leader();
}

void run_end::begin() {
  const auto& as_node = core_.as_node;
  core_.members.describe_traffic();
  core_.change.is_over();
  core_.setup.records.view->ended(result_.error);  // before its actors end: they stay to be seen
  as_node.tell<stop_accepting>(core_.members.acceptor(), {});
  const auto& view = core_.view();
  // Who waits to join hears that there is nothing to join; from one that leaves, only that it goes.
  const bool leaves = view.epoch > 0 && view.self() == no_worker;
  for (const auto& [seat, link] : core_.members.links()) {
    const bool waits = !view.members.empty() && !view.has(seat) && !view.has_witness(seat) &&
                       !core_.members.is_gone(seat) && !leaves && goodbye_.reason.empty();
    as_node.tell<close_link>(link, {waits ? "the run has ended" : goodbye_.reason, goodbye_.of});
  }
  // Past what waits in their mailboxes: of kernels that nobody needs any more there may be several passes. But the solver first shows
  // what the other nodes have reported: the results of the last test.
  for (const auto& a : core_.run.all())
    if (a.target() == core_.run.the_trainer().end.target())
      as_node.tell<shut_down>(a, {});
    else
      as_node.tell_urgent<shut_down>(a, {});
}

/// Handles are references, and some of those actors refer to the node: a circle would keep all of them.
void run_end::complete() {
  result_.compiled = core_.run.drop();
  core_.setup.ended(std::move(result_));
  core_.kept = {};
  core_.members.drop();
}

}  // namespace poseidon
