#include "actors/node/frame_desk.hpp"

#include "actors/node/node.hpp"

#include <variant>

namespace poseidon {

frame_desk::next frame_desk::hear(const control_arrived& m) {
  const auto& view = core_.view();
  auto why = refusal_of(m.header, m.from, {view.self, view.leader, core_.phase});
  if (!why) why = turns_.refusal_of(m.header, m.from);
  if (why) {
    // The link's end is the run's: the peer hears why, and so does the user.
    const auto& links = core_.members.links();
    if (const auto link = links.find(m.from); link != links.end())
      core_.as_node.tell<close_link>(link->second,
                                     {view.name_of(m.from) + " sent a bad frame: " + *why});
    return next::nothing;
  }
  return std::visit(
      [&](const auto& f) {
        if constexpr (reaches_node<decltype(f)>)
          return on(f, m.from);
        else
          return next::nothing;
      },
      m.header);
}

// -- forming ---------------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::time_net& f, worker_id) {
  joining_.on(f);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::net_timed& f, worker_id from) {
  leader_.here()->on(f, from);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::view& f, worker_id from) {
  joining_.on(f, from);
  return next::build;
}

frame_desk::next frame_desk::on(const frames::member_ready& f, worker_id) {
  leader_.here()->on(f);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::start_training&, worker_id) {
  if (core_.phase == run_phase::resuming) return next::resume;
  core_.setup.display->detail("membership: all are ready, training begins");
  return next::begin;
}

// -- links -----------------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::probe& f, worker_id from) {
  if (f.last) core_.members.send(from, {frames::probe_heard{f.round}, {}, 0});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::probe_heard& f, worker_id from) {
  if (!rates_.probes()) {
    if (leader_.here() != nullptr) leader_.here()->probe_heard(from, f.round);
  } else if (const auto rate = rates_.probe_heard(from, f.round)) {
    leader_.rate(*rate);
  }
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::send_rate& f, worker_id from) {
  leader_.here()->rate(from, {f.mbit_s, f.probed});
  return next::nothing;
}

// -- for the node's actors -------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::watch& f, worker_id from) {
  core_.as_node.tell<control_arrived>(assembly_.the_telemetry(), {from, f});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::gather_history& f, worker_id from) {
  core_.as_node.tell<control_arrived>(core_.run.graph().parameters().shard(), {from, f});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_report& f, worker_id from) {
  core_.as_node.tell<control_arrived>(core_.run.the_trainer().control, {from, f});
  return next::nothing;
}

// -- the next view ---------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::hold_training&, worker_id) {
  changing_.hold();
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_paused& f, worker_id) {
  leader_.here()->paused({f.worker, f.clock, f.drained});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::change_routes& f, worker_id) {
  changing_.take(f);
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::rebuild_graph&, worker_id) {
  next_view();
  changing_.leave();
  return next::nothing;
}

// -- the last clock --------------------------------------------------------------------------------------

frame_desk::next frame_desk::on(const frames::stop_requested& f, worker_id) {
  core_.as_node.tell<stop_soon>(core_.run.the_trainer().stop, {f.reason});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::snapshot_requested&, worker_id from) {
  core_.setup.display->note("a snapshot after this iteration: " + core_.view().name_of(from) +
                            " asks for it");
  core_.as_node.tell<snapshot_soon>(core_.run.the_trainer().snapshot, {});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::stop_after& f, worker_id) {
  end_.note_stop(f.version, f.reason);
  core_.as_node.tell<finish_after>(core_.run.the_trainer().finish, {f.version, f.reason});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_left& f, worker_id from) {
  core_.as_node.tell<control_arrived>(core_.run.the_trainer().control, {from, f});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::factor_offer& f, worker_id from) {
  core_.as_node.tell<control_arrived>(core_.run.the_trainer().control, {from, f});
  return next::nothing;
}

frame_desk::next frame_desk::on(const frames::worker_done& f, worker_id) {
  leader_.here()->on(f);
  return next::nothing;
}

}  // namespace poseidon
