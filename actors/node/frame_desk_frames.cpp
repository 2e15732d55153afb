// What a node does with each kind of frame, once frame_desk has found that it may be said now.
#include "actors/node/frame_desk.hpp"
#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

namespace {

/// A member is lost, and this node has frozen, or builds the next view: what was asked for in the view before, and is heard only now, is
/// over. Its links are not bound to the next view yet, so it is none of that. Where nobody can be lost all drain first, and nothing is left.
bool is_over(const node_core& core) {
  return core.setup.run && core.setup.run->survive > 0 &&
         (core.change.has_frozen() || core.change.is_in(stages::without_graph));
}

}  // namespace

// -- forming ---------------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::gathering& f, const sender&) {
  joining_.on(f);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::time_net& f, const sender&) {
  joining_.on(f);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::net_timed& f, const sender& from) {
  leader_.here()->on(f, from.seat);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::view& f, const sender&) {
  if (f.prospect) {
    joining_.prepare(f);
    return next::nothing;
  }
  joining_.enter(f);
  return next::build;
}

frame_desk::next frame_desk::on(const frames::join_ready& f, const sender& from) {
  leader_.here()->on(f, from.seat);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::leave_wanted& f, const sender& from) {
  leader_.here()->leaves(from.seat, f.why);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::suspect& f, const sender& from) {
  if (!core_.comes(f.seat)) return next::nothing;
  const auto why = core_.view().name_of(from.seat) + " has no link to it: " + f.why;
  core_.close_link_to(f.seat, {why, frames::goodbye::cause::left_out});
  core_.members.lost(f.seat, why);
  leader_.missing(f.seat, why);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::member_ready& f, const sender& from) {
  leader_.here()->on(f, from.seat);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::start_training&, const sender&) {
  if (core_.change.at() == node_stage::resuming) return next::resume;
  if (core_.change.at() == node_stage::parting) return next::part;
  core_.setup.display->detail("membership: all are ready, training begins");
  return next::begin;
}

// -- links -----------------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::probe& f, const sender& from) {
  if (f.last) core_.members.send(from.seat, {frames::probe_heard{f.round}, {}, 0});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::probe_heard& f, const sender& from) {
  if (!rates_.probes()) {
    if (leader_.here() != nullptr) leader_.here()->probe_heard(from.worker, f.round);
  } else if (const auto rate = rates_.probe_heard(from.worker, f.round)) {
    leader_.rate(*rate);
  }
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::send_rate& f, const sender& from) {
  leader_.here()->rate(from.worker, {f.mbit_s, f.probed});
  return next::nothing;
}

// -- for the node's actors -------------------------------------------------------------------------------

frame_desk::next frame_desk::to_trainer(frame_header f, const sender& from) {
  core_.as_node.tell<control_passed>(core_.run.the_trainer().control, {from.worker, std::move(f)});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::watch& f, const sender& from) {
  core_.as_node.tell<control_passed>(assembly_.the_telemetry(), {from.worker, f});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::gather_history& f, const sender& from) {
  if (from.worker == no_worker || is_over(core_)) return next::nothing;
  core_.as_node.tell<control_passed>(core_.run.graph().parameters().shard(), {from.worker, f});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_report& f, const sender& from) {
  return core_.computes() ? to_trainer(f, from) : next::nothing;
}

// -- the next view ---------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::hold_training&, const sender&) {
  if (!is_over(core_)) changing_.hold();
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_paused& f, const sender& from) {
  auto& leads = *leader_.here();
  f.drained ? leads.drained(from.seat, f.clock) : leads.holds(from.seat, f.clock);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::drain& f, const sender&) {
  if (!is_over(core_)) changing_.take(f);
  return next::nothing;
}

// -- the last clock --------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::stop_requested& f, const sender&) {
  core_.as_node.tell<stop_soon>(core_.run.the_trainer().stop, {f.reason});
  leader_.here()->ends();
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::snapshot_requested&, const sender& from) {
  core_.setup.display->note("a snapshot after this iteration: " + core_.view().name_of(from.seat) +
                            " asks for it");
  core_.as_node.tell<snapshot_soon>(core_.run.the_trainer().snapshot, {});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::stop_after& f, const sender&) {
  if (is_over(core_)) return next::nothing;  // the next view's leader is asked again
  end_.note_stop(f.version, f.reason);
  core_.as_node.tell<finish_after>(core_.run.the_trainer().finish, {f.version, f.reason});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_done& f, const sender& from) {
  if (is_over(core_)) return next::nothing;
  leader_.here()->on(f, from.seat);
  return next::nothing;
}

}  // namespace poseidon
