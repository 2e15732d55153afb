#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

node::node(actor_context context, node_setup setup)
    : actor(context), core_(this, std::move(setup)) {}

void node::started() {
  set_down_handler([this](const caf::down_msg& m) { an_actor_died(m); });
  // There is no actor above this one that would hear of it.
  set_exception_handler([this](std::exception_ptr& thrown) -> caf::error {
    end_.threw(thrown);
    close();
    return caf::exit_reason::normal;
  });
}

// -- until training begins -------------------------------------------------------------------------------

void node::on(const start_node&) {
  if (const auto later = progress_.interval()) tell_self(look_at_progress{}, *later);
  guarded([this] {
    if (core_.setup.cluster.join) {
      joining_.join();
    } else if (core_.setup.run->workers > 1) {
      leader_.lead().choose();
    } else {
      core_.members.enter(view_of_leader());
      build();
    }
  });
}

void node::on(const routes_chosen& m) {
  guarded([&] {
    if (leader_.here()->on(m)) build();
  });
}

void node::on(const link_accepted& m) {
  if (core_.has_ended()) return;
  auto* const leads = leader_.here();
  const auto room = leads != nullptr ? leads->room() : 0;
  if (room > 0)
    if (const auto why = leads->objection_to(m.connection.peer))
      return core_.members.turn_away(m.connection, *why);
  switch (core_.members.admit(m.connection, room, core_.here())) {
    case member::admission::joined:
      return leader_.here()->joined(m.connection.peer.listen_address);
    case member::admission::linked:
      return guarded([this] {
        if (assembly_.bind_if_complete()) stands();
      });
    case member::admission::kept:
    case member::admission::stranger:
      return;
  }
}

void node::on(const peer_refused& m) {
  core_.setup.display->note("refused: " + m.text);
}

void node::on(const view_agreed& m) {
  guarded([&] {
    if (leader_.here()->on(m)) build();
  });
}

void node::build() {
  assembly_.build(leader_.here() != nullptr ? leader_.here()->decisions()
                                            : std::vector<route_decision>{});
  rates_.begin();
  route_file_.write();
  if (assembly_.bind_if_complete()) stands();
}

void node::on(const link_bound&) {
  if (assembly_.bound()) stands();
}

/// This node's graph and links stand; it waits for the others.
void node::stands() {
  if (core_.phase == run_phase::waiting) values_.show();
  if (leader_.ready()) on(everyone_ready{});
}

/// All links of all nodes are bound now: values may travel.
void node::on(const everyone_ready&) {
  guarded([this] {
    if (auto* const leads = leader_.here()) {
      leads->check_replicas();
      if (const auto next = leads->announce_next_change()) changing_.take(*next);
    }
    if (core_.phase == run_phase::resuming) return resume();
    core_.setup.display->detail("membership: all are ready; sending first values, training begins");
    values_.give_first_values();
    core_.members.broadcast(frames::start_training{});
    begin();
  });
}

void node::begin() {
  core_.phase = run_phase::training;
  changing_.take_next();
  tell<begin_training>(core_.run.the_trainer().begin, {clock_id{core_.setup.run->first_clock}});
}

void node::on(const control_arrived& m) {
  if (core_.has_ended()) return;
  guarded([&] {
    switch (desk_.hear(m)) {
      case frame_desk::next::nothing:
        return;
      case frame_desk::next::build:
        return build();
      case frame_desk::next::begin:
        return begin();
      case frame_desk::next::resume:
        return resume();
    }
  });
}

// -- the next view ---------------------------------------------------------------------------------------

void node::on(const link_flow& m) {
  if (const auto rate = rates_.on(m)) leader_.rate(*rate);
}

void node::on(const routes_proposed& m) {
  if (core_.phase == run_phase::training && !core_.change.under_way()) leader_.here()->on(m);
}

void node::on(const factors_offered& m) {
  if (auto* const leads = leader_.here()) leads->on(m);
}

void node::on(const hold_everyone&) {
  core_.members.broadcast(frames::hold_training{});
  changing_.hold();
}

void node::on(const clocks_held& m) {
  leader_.paused({view().self, m.clock, false});
}

void node::on(const change_agreed& m) {
  const frames::change_routes change{m.clock, m.routes, m.why, leader_.here()->factor_rows()};
  core_.members.broadcast(change);
  changing_.take(change);
}

void node::on(const training_paused& m) {
  if (const auto paused = changing_.on(m)) leader_.paused(*paused);
}

void node::on(const everyone_drained&) {
  core_.members.broadcast(frames::rebuild_graph{});
  desk_.next_view();
  changing_.leave();
}

void node::on(const history_released& m) {
  changing_.on(m);
}

void node::resume() {
  const auto stopped = changing_.resume();
  if (leader_.here() != nullptr) leader_.here()->changed(stopped);
}

// -- the last clock --------------------------------------------------------------------------------------

void node::on(const stop_decided& m) {
  end_.note_stop(m.version, m.reason);
  core_.members.broadcast(frames::stop_after{m.version, m.reason});
}

void node::on(const training_done& m) {
  if (core_.phase != run_phase::training) return;
  core_.setup.display->detail("membership: this node is done, at version " +
                              std::to_string(value(m.version)) + ", " + std::to_string(m.images) +
                              " images");
  if (!m.snapshot_error.empty()) end_.without_snapshot(m.version, m.snapshot_error);
  core_.done = true;
  if (leader_.done(m.version)) close();
}

void node::on(const everyone_done&) {
  close();
}

void node::on(const interrupted& m) {
  if (m.snapshot) return end_.keep_snapshot();
  if (end_.interrupted(m.signal)) return close();
  const bool looks = progress_.interval().has_value();
  progress_.hurry();
  if (!looks) on(look_at_progress{});
}

void node::on(const look_at_progress&) {
  if (core_.phase == run_phase::ended) return;
  if (auto why = progress_.look(std::chrono::steady_clock::now())) fail(std::move(*why), 3);
  if (const auto later = progress_.interval()) tell_self(look_at_progress{}, *later);
}

// -- ends ------------------------------------------------------------------------------------------------

void node::on(const link_lost& m) {
  if (core_.phase != run_phase::ended && end_.lost(m)) close();
}

void node::on(const training_failed& m) {
  fail(m.text, m.exit_code);
}

namespace {

/// An actor's exception in its own words; what CAF itself has to say as CAF says it.
std::string text_of(caf::actor_system& system, const caf::error& reason) {
  const auto& words = reason.context();
  return words.match_elements<std::string>() ? words.get_as<std::string>(0) : system.render(reason);
}

}  // namespace

void node::an_actor_died(const caf::down_msg& m) {
  if (core_.phase == run_phase::ended) return;
  if (m.reason == caf::exit_reason::normal) {
    if (changing_.left(m.source))
      guarded([this] {
        changing_.rebuild();
        route_file_.write();
        if (assembly_.bind_if_complete()) stands();
      });
    return;
  }
  fail(text_of(system(), m.reason), 1);
  // The snapshot that the node has waited for since a peer was lost will not come.
  if (core_.phase == run_phase::failing &&
      m.source == caf::actor_cast<caf::actor_addr>(core_.run.checkpoints().untyped()))
    close();
}

void node::on(const snapshot_written& m) {
  core_.setup.display->snapshot(value(m.version), m.path, m.error);
  end_.kept(m);
  close();
}

void node::close() {
  if (core_.phase == run_phase::ended) return;
  end_run();
  quit();
}

/// Told to exit by another actor than its own: the actors that it has spawned end with it.
void node::on_exit() {
  if (core_.phase == run_phase::ended) return;
  end_.was_stopped();
  end_run();
}

void node::end_run() {
  end_.begin();
  leader_.end();
  assembly_.end();
  values_.end();
  end_.complete();
}

}  // namespace poseidon
