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
  set_down_handler([this](const caf::down_msg& m) {
    an_actor_died(m);
    handled();
  });
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
    core_.run.describe_program();
    core_.run.describe_data();
    if (core_.setup.run->workers > 1) {
      leader_.lead().choose();
    } else if (cluster.listen) {
      leader_.lead().gather();
      build();
    } else {
      core_.members.enter(view_of_leader(clock_id{core_.setup.run->first_clock}));
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
  using purpose = link_identity::purpose;
  if (peer.wants == purpose::ask_to_leave) return asked_to_leave(m.connection);
  if (peer.wants == purpose::ask_to_go_on) return asked_to_go_on(m.connection);
  if (peer.wants == purpose::look) return;  // it has heard, and the connection ends
  auto* const leads = leader_.here();
  const bool joins = leads != nullptr && peer.seat == no_seat;
  if (joins)
    if (const auto why = leads->objection_to(peer))
      return core_.members.turn_away(m.connection, *why);
  switch (core_.members.admit(m.connection, joins, core_.here())) {
    case member::admission::joined:
      return peer.wants == purpose::witness ? leads->witness_joined(core_.members.newest())
                                            : leads->joined(core_.members.newest());
    case member::admission::linked:
      // It has missed that the others go on without it, and this node has not entered that view yet.
      if (core_.change.leaves_behind(peer.seat)) return leave_to_themselves(core_.change.next());
      member_found(peer.seat);
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
    return core_.members.turn_away(
        c, core_.setup.around ? "this node is part of a program, which leaves by itself: a script "
                                "by poseidon.leave(others_go_on=True), or by ending its process"
           : core_.trains()   ? "this node cannot leave: it is the last one, or the others "
                                "cannot go on without it"
                              : "this node does not train yet");
  core_.members.dismiss(c);
}

/// poseidon-node go-on
void node::asked_to_go_on(const link_connection& c) {
  if (!core_.change.go_on_without_them(facts()))
    return core_.members.turn_away(c, "this node waits for no lost member");
  core_.setup.display->note(
      "asked by poseidon-node go-on to go on without the members that it does not hear");
  core_.members.dismiss(c);
  agree();
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

void node::build() {
  assembly_.build(leader_.here() != nullptr ? leader_.here()->decisions()
                                            : std::vector<route_decision>{});
  rates_.begin();
  route_file_.write();
  if (assembly_.bind_if_complete()) stands();
}

void node::on(const link_bound& m) {
  link_is_silent(m.peer);
  if (assembly_.bound(m.peer, m.epoch)) stands();
}

/// This node's graph and links stand; it waits for the others.
void node::stands() {
  if (core_.change.at() == node_stage::waiting) values_.show();
  if (leader_.ready()) act_on(plan::begin_view{});
}

void node::begin() {
  if (leader_.here() == nullptr) values_.take_own_values();
  changing_.begin();
  note_newcomers();
  leavers_.view_begins();
  watch_leavers();
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
        for (const auto& lost : joining_.take_unreached()) on(lost);
        for (const auto& early : desk_.take_early()) on(early);
        return;
      case frame_desk::next::begin:
        return begin_as_told(&node::begin);
      case frame_desk::next::resume:
        return begin_as_told(&node::resume);
      case frame_desk::next::vote:
        return core_.change.hears(m.seat, m.header, facts());
      case frame_desk::next::follow:
        core_.change.is_told(std::get<frames::next_view>(m.header), facts());
        return do_actions();
      case frame_desk::next::lose:
        return member_failed(m.seat, std::get<frames::suspect>(m.header).why);
      case frame_desk::next::part:
        changing_.part();
        return core_.setup.run->survive == 0 ? close() : void();
    }
  });
  agree();
}

// -- the last clock --------------------------------------------------------------------------------------

void node::on(const stop_decided& m) {
  if (core_.change.has_frozen()) return;
  end_.note_stop(m.version, m.reason);
  core_.members.broadcast(frames::stop_after{m.version, m.reason});
}

void node::on(const training_done& m) {
  leaves_ = leaves_ || m.others_go_on;
  if (!core_.computes()) return;
  core_.setup.display->detail("membership: this node is done, at version " +
                              std::to_string(value(m.version)) + ", " + std::to_string(m.images) +
                              " images");
  if (!m.snapshot_error.empty()) end_.without_snapshot(m.version, m.snapshot_error);
  core_.done = true;
  if (leader_.done({m.version, m.others_go_on})) close();
}

void node::on(const interrupted& m) {
  if (m.snapshot) return end_.keep_snapshot();
  if (const auto paused = core_.change.why_paused(facts()); !paused.empty())
    return give_up_waiting(paused, "It was told to end", m.leaves);
  // The others may begin the view with this node at this moment, and would lose it.
  if (core_.change.at() == node_stage::gathering && joining_.is_ready() &&
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
  if (core_.change.at() == node_stage::ended) return;
  const auto paused = core_.change.why_paused(facts());
  if (auto why = progress_.look(std::chrono::steady_clock::now(), !paused.empty())) {
    paused.empty() ? fail(std::move(*why), 3)
                   : give_up_waiting(paused, "It has waited for --progress-limit", false);
  }
  const auto later = progress_.interval();
  looks_ = later.has_value();
  if (later) tell_self(look_at_progress{}, *later);
}

}  // namespace poseidon
