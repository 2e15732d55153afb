// What a node that leads does as its plan of the views asks (actors/membership/view_plan.hpp).
#include "actors/node/node.hpp"

#include <utility>
#include <variant>

namespace poseidon {

namespace {

/// Whoever ends all nodes of a job asks them one after the other, within so long.
constexpr std::chrono::milliseconds for_leavers{200};

}  // namespace

/// One action may bring another one, and another plan: that one's actions are what counts from then on.
void node::handled() {
  do_actions();
  while (!core_.has_ended() && leader_.here() != nullptr) {
    const auto action = leader_.here()->take_action();
    if (!action) break;
    std::visit([this](const auto& a) { act_on(a); }, *action);
  }
  if (!core_.has_ended() && core_.change.is_to_look(view())) agree();
  const auto at = core_.change.at();
  if (core_.setup.records.view->stands_at(at))
    core_.setup.display->detail("stage: " + std::string(to_string(at)));
}

void node::act_on(const plan::agree_on_first_view& a) {
  guarded([&] {
    if (leader_.here()->agree(a)) build();
  });
}

/// All links of all nodes are bound now: values may travel.
void node::act_on(const plan::begin_view&) {
  guarded([this] {
    // Another view takes the place of this one.
    if (!core_.change.is_in(during(node_stage::waiting, node_stage::resuming))) return;
    if (!core_.members.missing().empty() || core_.change.has_promised(view())) return;
    if (auto* const leads = leader_.here()) {
      leads->check_replicas();
      if (const auto next = leads->announce_next_change())
        changing_.take({*next, leads->for_newcomers()});
    }
    if (core_.change.at() == node_stage::resuming) {
      resume();
    } else {
      core_.setup.display->detail(
          "membership: all are ready; sending first values, training begins");
      values_.make_first_values();
      values_.hand_over();
      begin();
    }
    if (auto* const leads = leader_.here()) leads->began();
  });
}

void node::act_on(const plan::hold_all&) {
  core_.members.broadcast(frames::hold_training{});
  changing_.hold();
}

/// Where a member was lost meanwhile, the plan of the next view agrees on another clock, if it still has a reason.
void node::act_on(const plan::drain_all& a) {
  if (!core_.computes()) return;
  const frames::drain drain{a.clock, leader_.here()->for_newcomers()};
  core_.members.broadcast(drain);
  changing_.take(drain);
}

/// They have all versions up to this clock's whole. The leader may wait for its snapshot, which waits for that.
void node::act_on(const plan::others_wait& a) {
  if (!core_.computes()) return;
  tell<floor_reached>(core_.run.checkpoints(), {version_id{value(a.clock)}});
}

void node::act_on(const plan::propose_view& a) {
  drained_ = a;
  propose();
}

void node::act_on(const plan::collect_leavers& a) {
  tell_self(leavers_collected{a.epoch}, for_leavers);
}

void node::on(const leavers_collected& m) {
  if (auto* const leads = leader_.here()) leads->leavers_collected(m.epoch);
}

/// All members have been told to leave: that is the end of the run, with its snapshot.
void node::act_on(const plan::end_run&) {
  tell<stop_soon>(core_.run.the_trainer().stop, {"all nodes leave"});
}

}  // namespace poseidon
