#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

namespace {

/// So long a node that is ready to join waits after a signal for the view that may have begun with it.
constexpr std::chrono::seconds before_it_goes{2};

}  // namespace

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
  watch_progress();
  guarded([this] {
    const auto& cluster = core_.setup.cluster;
    if (!cluster.join.empty()) return joining_.join();
    core_.run.settle_batch();
    if (core_.setup.run->workers > 1) {
      leader_.lead().choose();
    } else if (cluster.listen) {
      leader_.lead().gather();
      build();
    } else {
      core_.members.enter(view_of_leader());
      build();
    }
  });
}

void node::on(const dial_again&) {
  if (core_.has_ended()) return;
  guarded([this] { joining_.dial(); });
}

void node::on(const routes_chosen& m) {
  guarded([&] {
    if (leader_.here()->on(m)) build();
  });
}

void node::on(const link_accepted& m) {
  if (core_.has_ended()) return;
  const auto& peer = m.connection.peer;
  if (peer.wants == link_identity::purpose::ask_to_leave) return asked_to_leave(m.connection);
  auto* const leads = leader_.here();
  const bool joins = leads != nullptr && peer.seat == no_seat;
  if (joins)
    if (const auto why = leads->objection_to(peer))
      return core_.members.turn_away(m.connection, *why);
  switch (core_.members.admit(m.connection, joins, core_.here())) {
    case member::admission::joined:
      return leads->joined(core_.members.newest());
    case member::admission::linked:
      return guarded([this] {
        if (assembly_.bind_if_complete()) stands();
      });
    case member::admission::kept:
    case member::admission::dropped:
      return;
  }
}

/// poseidon-node leave
void node::asked_to_leave(const link_connection& c) {
  if (!leave(0, "asked to by poseidon-node leave"))
    return core_.members.turn_away(c, core_.trains()
                                          ? "this node cannot leave: it is the last one, or "
                                            "the others cannot go on without it"
                                          : "this node does not train yet");
  core_.members.dismiss(c);
}

/// False: this node cannot leave. Whoever asks twice is content with once.
bool node::leave(int signal, const std::string& why) {
  if (end_.is_leaving()) return true;
  if (!end_.leaves(signal)) return false;
  if (end_.takes_leave()) leader_.leaves(why);
  return true;
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

void node::on(const link_bound& m) {
  if (assembly_.bound(m.peer, m.epoch)) stands();
}

/// This node's graph and links stand; it waits for the others.
void node::stands() {
  if (core_.phase == run_phase::waiting) values_.show();
  if (leader_.ready()) on(everyone_ready{});
}

/// All links of all nodes are bound now: values may travel.
void node::on(const everyone_ready&) {
  guarded([this] {
    if (!core_.members.missing().empty()) return;  // another view takes the place of this one
    if (auto* const leads = leader_.here()) {
      leads->check_replicas();
      if (const auto next = leads->announce_next_change()) changing_.take(*next);
    }
    if (core_.phase == run_phase::resuming) {
      resume();
    } else {
      core_.setup.display->detail(
          "membership: all are ready; sending first values, training begins");
      values_.give_first_values();
      core_.members.broadcast(frames::start_training{});
      begin();
    }
    if (auto* const leads = leader_.here()) leads->began();
  });
}

void node::begin() {
  changing_.begin();
  tell<begin_training>(core_.run.the_trainer().begin, {clock_id{core_.setup.run->first_clock}});
  say_what_is_wanted("SIGTERM");
}

/// To the leader of a view that begins: what this node's user has wanted before.
void node::say_what_is_wanted(const std::string& why) {
  end_.say_again();
  if (end_.takes_leave()) leader_.leaves(why);
}

void node::on(const control_arrived& m) {
  if (core_.has_ended()) return;
  guarded([&] {
    switch (desk_.hear(m)) {
      case frame_desk::next::nothing:
        return;
      case frame_desk::next::build:
        build();
        report_missing();
        for (const auto& early : desk_.take_early()) on(early);
        return;
      case frame_desk::next::begin:
        if (!is_without_a_newcomer()) begin();
        return;
      case frame_desk::next::resume:
        if (!is_without_a_newcomer()) resume();
        return;
      case frame_desk::next::lead:
        leader_.lead().take_over(core_.change.next());
        [[fallthrough]];
      case frame_desk::next::change:
        for (const auto& early : desk_.take_early()) on(early);
        return;
      case frame_desk::next::rebuild:
        return rebuild();
      case frame_desk::next::part:
        changing_.part();
        return close();
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
  leader_.paused({view().seat, m.clock, false});
}

void node::on(const drain_agreed& m) {
  core_.members.broadcast(frames::drain{m.clock});
  changing_.take(m.clock);
}

void node::on(const training_paused& m) {
  if (const auto paused = changing_.on(m)) leader_.paused(*paused);
}

void node::on(const everyone_drained& m) {
  if (leader_.here() == nullptr) return;  // it has handed over, and the next leader decides
  guarded([&] {
    const auto next = leader_.here()->tell_next_view(m);
    desk_.next_view();
    if (changing_.leave(next)) rebuild();
    if (next.members.front().seat != view().seat) leader_.end();
  });
}

void node::rebuild() {
  guarded([this] {
    const auto leader = view().leader();
    changing_.rebuild();
    leader_changed_ = leader_changed_ || leader != view().leader();
    route_file_.write();
    if (core_.phase == run_phase::parting) (void)leader_.ready();
    report_missing();
    if (assembly_.bind_if_complete()) stands();
  });
}

/// The leader takes newcomers that died before this view could begin out of the next one.
void node::report_missing() {
  for (const auto& [seat, why] : core_.members.missing()) leader_.missing(seat, why);
}

/// The view has begun, and one of those that were to join is gone: that is a lost member.
bool node::is_without_a_newcomer() {
  const auto missing = core_.members.missing();
  if (missing.empty()) return false;
  fail(missing.begin()->second, 3);
  return true;
}

/// All members have been told to leave: that is the end of the run, with its snapshot.
void node::on(const everyone_leaves&) {
  tell<stop_soon>(core_.run.the_trainer().stop, {"all nodes leave"});
}

void node::on(const history_released& m) {
  changing_.on(m);
}

void node::resume() {
  changing_.resume();
  if (changing_.members_changed()) rates_.begin();
  if (leader_.here() != nullptr)
    leader_.here()->changed(changing_.stopped(), changing_.members_changed());
  if (std::exchange(leader_changed_, false))
    say_what_is_wanted("it says so again, because another node led meanwhile");
  for (auto& early : core_.members.take_early()) on(link_accepted{std::move(early)});
  watch_progress();
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
  // The others may begin the view with this node at this moment, and would lose it.
  if (core_.phase == run_phase::gathering && joining_.is_ready() &&
      !std::exchange(waits_to_go_, true))
    return tell_self(m, before_it_goes);
  if (m.leaves && leave(m.signal, "SIGTERM")) return;
  if (end_.interrupted(m.signal)) return close();
  if (auto* const leads = leader_.here()) leads->ends();
  progress_.hurry();
  watch_progress();
}

/// Where this node is alone, there is nothing to watch until another one joins.
void node::watch_progress() {
  if (looks_ || !progress_.interval()) return;
  looks_ = true;
  on(look_at_progress{});
}

void node::on(const look_at_progress&) {
  if (core_.phase == run_phase::ended) return;
  if (auto why = progress_.look(std::chrono::steady_clock::now())) fail(std::move(*why), 3);
  const auto later = progress_.interval();
  looks_ = later.has_value();
  if (later) tell_self(look_at_progress{}, *later);
}

// -- ends ------------------------------------------------------------------------------------------------

void node::on(const link_lost& m) {
  if (core_.phase == run_phase::ended) return;
  bool waits = false;
  guarded([&] { waits = joining_.lost(m); });
  if (waits) desk_.forget(m.peer);
  if (waits || core_.phase == run_phase::ended) return;
  if (core_.comes(m.peer) && core_.phase != run_phase::failing) {
    core_.setup.display->detail("link lost: " + m.why);
    core_.members.lost(m.peer, m.why);
    return leader_.missing(m.peer, m.reason.value_or(m.why));
  }
  if (auto* const leads = leader_.here(); leads != nullptr && !view().has(m.peer))
    leads->gone(m.peer, m.reason.value_or(m.why));
  if (end_.lost(m)) close();
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
    if (changing_.left(m.source)) rebuild();
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
