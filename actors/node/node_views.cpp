// How a node comes from one view to the next: which of its parts hears what, in which order.
#include "actors/node/node.hpp"
#include "actors/node/state_left.hpp"
#include "models/words.hpp"

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

void node::on(const clocks_held& m) {
  if (m.epoch == view().epoch) leader_.holds(m.clock);
}

void node::on(const training_paused& m) {
  if (const auto clock = changing_.on(m)) leader_.drained(*clock);
}

void node::on(const clocks_given_up&) {
  if (changing_.gave_up()) has_frozen();
}

/// One view after the other: what follows a view is proposed when that view has been decided.
void node::propose() {
  if (drained_ && drained_->epoch <= agreement_.epoch()) drained_.reset();  // of a view before
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

/// The members have agreed on the next view, which may take the place of one that has not begun. A node that trains freezes first.
void node::follow(const frames::next_view& next) {
  const auto seat = view().seat;
  // It has come with a view that is replaced, and has nothing to hand over; or it has missed a view, which said that it is lost.
  const bool gives_nothing = begins_again(view(), next) && !view().had(seat);
  const bool missed_one =
      next.epoch > agreement_.epoch() + 1 && core_.change.at() != view_change::step::paused;
  const bool goes = !is_among(next.members, seat) && !end_.is_leaving();
  if (has_seat(next.lost, seat) || (goes && (gives_nothing || missed_one)))
    return left_out("the other nodes go on without this one from iteration " +
                    std::to_string(value(next.first_clock)) + " on: they have not heard it (" +
                    next.why + "). It writes nothing");
  const auto& change = core_.change;
  if (core_.phase == run_phase::training && change.at() != view_change::step::paused &&
      change.at() != view_change::step::frozen) {
    if (!later_ || later_->epoch < next.epoch) later_ = next;
    changing_.freeze();
    return;
  }
  if (is_of_newcomers_alone(core_, next))
    return fail(without_the_first_values(value(next.first_clock)) + ": " + next.why, 3);
  if (!changing_.can_follow(next))
    return fail("this node cannot follow the others to view " + std::to_string(next.epoch) +
                    ", which begins with iteration " + std::to_string(value(next.first_clock)) +
                    ": it has not what that view begins with",
                3);
  const auto gone = layers_without_state(core_, next);
  if (!gone.empty() && !core_.setup.run->zeroes_lost_state)
    return fail("solver state is gone with the nodes that were lost, that of " + comma_list(gone) +
                    ": --survive " + std::to_string(core_.setup.run->survive) +
                    " keeps no further copy, and with --lost-state zero the run would go on "
                    "without. " +
                    next.why,
                3);
  // Its plan has been of another one, or of none.
  const bool unplanned = change.at() == view_change::step::frozen || next.lost != view().lost ||
                         (leader_.here() != nullptr && !agreement_.is_as_wanted(next));
  desk_.next_view();
  const bool leads = next.members.front().seat == seat;
  if (leads && leader_.here() == nullptr)
    leader_.lead().take_over(next);
  else if (leads && unplanned)
    leader_.here()->take_over(next);
  if (!leads && leader_.here() != nullptr) leader_.end();
  if (!leads || unplanned) drained_.reset();
  leader_changed_ = leader_changed_ || unplanned;
  leave_to_themselves(next);
  // A witness asks nobody, and who has decided the view may have ended before it could tell all.
  for (const auto& w : next.witnesses) core_.members.send(w.seat, send_frame{next, {}, 0});
  if (!gone.empty()) changing_.begin_with_zeros(gone, next.first_clock);
  if (changing_.leave(next)) rebuild();
  for (const auto& early : desk_.take_early()) on(early);
  propose();
}

/// A node that has been cut off, and may still be there, hears the view that the others go on with.
void node::leave_to_themselves(const frames::next_view& next) {
  for (const auto seat : next.lost) {
    const auto& links = core_.members.links();
    const auto link = links.find(seat);
    if (link == links.end()) continue;
    core_.members.send(seat, send_frame{next, {}, 0});
    tell<close_link>(link->second, {"the other nodes go on without it: " + next.why,
                                    frames::goodbye::cause::left_out});
    core_.members.lost(seat, next.why);
  }
}

void node::rebuild() {
  guarded([this] {
    const auto leader = view().leader();
    changing_.rebuild();
    leader_changed_ = leader_changed_ || leader != view().leader();
    route_file_.write();
    if (core_.phase == run_phase::parting) (void)leader_.ready();
    report_missing();
    if (core_.phase == run_phase::parting && core_.members.links().empty())
      return fail("all other nodes are lost, and this one was leaving", 3);
    find_witnesses();
    if (assembly_.bind_if_complete()) stands();
  });
}

/// A witness that has come while this node did may know nothing of it, or may have lost its link since it was ready.
void node::find_witnesses() {
  if (core_.phase == run_phase::parting) return;
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
  if (agreement_.has_promised()) return;
  const auto missing = core_.members.missing();
  if (!missing.empty() && core_.setup.run->survive == 0) return fail(missing.begin()->second, 3);
  (this->*begins)();
  for (const auto& [seat, why] : missing) member_lost({seat, why, false});
}

void node::on(const history_released& m) {
  changing_.on(m);
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
