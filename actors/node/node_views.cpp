// How a node comes from one view to the next: which of its parts hears what, in which order.
#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

void node::on(const link_flow& m) {
  if (const auto rate = rates_.on(m)) leader_.rate(*rate);
}

void node::on(const routes_proposed& m) {
  if (core_.change.at() == node_stage::training) leader_.here()->on(m);
}

void node::on(const factors_offered& m) {
  if (auto* const leads = leader_.here()) leads->on(m);
}

void node::on(const clocks_held& m) {
  if (m.epoch == view().epoch) leader_.holds(m.clock);
}

void node::on(const training_paused& m) {
  if (const auto clock = changing_.on(m)) leader_.drained(*clock);
}

void node::on(const clocks_given_up&) {
  has_left(changing_.trainer());
}

/// Something that computes has ended, or has given its work up.
void node::has_left(view_change::task task) {
  if (core_.has_ended()) return;
  if (core_.change.left(task, facts())) agree();
  do_actions();
}

/// One view after the other: what follows a view is proposed when that view has been decided.
void node::propose() {
  if (drained_ && drained_->epoch <= core_.newest_epoch()) drained_.reset();  // of a view before
  if (!drained_ || !core_.change.may_plan(view()) || leader_.here() == nullptr) return;
  guarded([this] {
    const auto m = *std::exchange(drained_, std::nullopt);
    core_.change.plans(leader_.here()->next_view(m), facts());
  });
  do_actions();
}

void node::act_on(const view_action::tell_newcomers& a) {
  if (auto* const leads = leader_.here()) leads->tell_newcomers(a.next);
}

/// The members have agreed on the next view, which may take the place of one that has not begun.
void node::act_on(const view_action::follow& a) {
  const auto& next = a.next;
  desk_.next_view();
  const bool leads = next.members.front().seat == view().seat;
  if (leads && leader_.here() == nullptr)
    leader_.lead().take_over(next);
  else if (leads && a.unplanned)
    leader_.here()->take_over(next);
  if (!leads && leader_.here() != nullptr) leader_.end();
  if (!leads || a.unplanned) drained_.reset();
  leader_changed_ = leader_changed_ || a.unplanned;
  leave_to_themselves(next);
  // A witness asks nobody, and who has decided the view may have ended before it could tell all.
  for (const auto& w : next.witnesses) core_.members.send(w.seat, send_frame{next, {}, 0});
  if (!a.zeroed.empty()) changing_.begin_with_zeros(a.zeroed, next.first_clock);
  changing_.leave(next, facts());
  do_actions();
  for (const auto& early : desk_.take_early()) on(early);
  propose();
}

/// A node that has been cut off, and may still be there, hears the view that the others go on with.
void node::leave_to_themselves(const frames::next_view& next) {
  for (const auto seat : next.lost) {
    if (!core_.members.links().contains(seat)) continue;
    core_.members.send(seat, send_frame{next, {}, 0});
    core_.close_link_to(
        seat, {"the other nodes go on without it: " + next.why, frames::goodbye::cause::left_out});
    core_.members.lost(seat, next.why);
  }
}

void node::act_on(const view_action::build&) {
  const auto leader = view().leader();
  changing_.rebuild();
  leader_changed_ = leader_changed_ || leader != view().leader();
  route_file_.write();
  if (core_.change.at() == node_stage::parting) (void)leader_.ready();
  report_missing();
  if (core_.change.at() == node_stage::parting && core_.members.links().empty())
    return fail("all other nodes are lost, and this one was leaving", 3);
  find_witnesses();
  if (assembly_.bind_if_complete()) stands();
}

/// A witness that has come while this node did may know nothing of it, or may have lost its link since it was ready.
void node::find_witnesses() {
  if (core_.change.at() == node_stage::parting) return;
  std::vector<link_lost> unreached;
  core_.members.dial_witnesses(core_.here(), unreached);
  for (const auto& lost : unreached) member_lost(lost);
}

/// The leader takes newcomers that died before this view could begin out of the next one.
void node::report_missing() {
  for (const auto& [seat, why] : core_.members.missing()) {
    if (const auto early = lost_early_.extract(seat)) newcomer_lost(early.mapped());
    leader_.missing(seat, why);
  }
  lost_early_.clear();
}

/// The leader says that all are ready. Where one of those that were to join is gone meanwhile, a member is lost.
void node::begin_as_told(void (node::*begins)()) {
  if (core_.change.has_promised(view())) return;
  const auto missing = core_.members.missing();
  if (!missing.empty() && core_.setup.run->survive == 0) return fail(missing.begin()->second, 3);
  (this->*begins)();
  for (const auto& [seat, why] : missing) member_lost({seat, why, false});
}

void node::on(const history_released& m) {
  changing_.on(m);
  do_actions();
}

/// Nobody tells the node of each version; and who waits for this has time.
void node::on(const look_at_leavers&) {
  looks_at_leavers_ = false;
  if (core_.has_ended()) return;
  leavers_.look();
  watch_leavers();
}

void node::watch_leavers() {
  if (!leavers_.wait() || !view().leads() || std::exchange(looks_at_leavers_, true)) return;
  tell_self(look_at_leavers{}, std::chrono::milliseconds{20});
}

void node::resume() {
  changing_.resume();
  note_newcomers();
  leavers_.view_begins();
  watch_leavers();
  if (changing_.members_changed()) rates_.begin();
  if (leader_.here() != nullptr)
    leader_.here()->changed(changing_.stopped(), changing_.members_changed());
  if (std::exchange(leader_changed_, false))
    say_what_is_wanted("it says so again, because another node led meanwhile");
  for (auto& early : core_.members.take_early()) on(link_accepted{std::move(early)});
  watch_progress();
}

}  // namespace poseidon
