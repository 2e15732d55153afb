// How a node comes from one view to the next: which of its parts hears what, in which order.
#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

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
  drained_ = m;
  propose();
}

/// One view after the other: what follows a view is proposed when that view has been decided.
void node::propose() {
  if (!drained_ || !agreement_.is_free() || leader_.here() == nullptr) return;
  guarded([this] {
    const auto m = *std::exchange(drained_, std::nullopt);
    agreement_.propose(leader_.here()->next_view(m));
  });
  take_decision();
}

void node::take_decision() {
  if (core_.has_ended()) return;
  guarded([this] {
    const auto next = agreement_.take_decision();
    if (!next) return;
    if (auto* const leads = leader_.here()) leads->tell_newcomers(*next);
    follow(*next);
  });
}

/// The members have agreed on the next view, which may take the place of one that has not begun.
void node::follow(const frames::next_view& next) {
  desk_.next_view();
  const bool leads = next.members.front().seat == view().seat;
  if (leads && leader_.here() == nullptr) leader_.lead().take_over(next);
  if (!leads && leader_.here() != nullptr) leader_.end();
  if (!leads) drained_.reset();
  if (changing_.leave(next)) rebuild();
  for (const auto& early : desk_.take_early()) on(early);
  propose();
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

}  // namespace poseidon
