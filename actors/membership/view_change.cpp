// The way of one node from one view to the next. Who decides which one that is stands in view_change_votes.cpp.
#include "actors/membership/view_change.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

namespace {

using cause = view_action::end_run::cause;

/// `next` begins with the version that this view began with, and all its members came with this view: they cannot know that they have
/// all solver state of it. Before iteration 0 there is none.
bool is_of_newcomers_alone(const agreed_view& view, const frames::next_view& next) {
  return !view.before.empty() && next.first_clock == view.first_clock &&
         !begins_again(view, next) && value(next.first_clock) > 0;
}

std::vector<std::string> layers_gone(const view_facts& f, const frames::next_view& next) {
  return f.layers_without_state ? f.layers_without_state(next) : std::vector<std::string>();
}

}  // namespace

std::optional<view_action::action> view_change::take_action() {
  if (to_do_.empty()) return std::nullopt;
  auto out = std::move(to_do_.front());
  to_do_.pop_front();
  return out;
}

// -- a planned change ------------------------------------------------------------------------------------

void view_change::enters(clock_id clock, std::uint64_t test_phases, frames::next_view next) {
  clock_ = clock;
  test_phases_ = test_phases;
  next_ = std::move(next);
  at_ = building;
  has_entered_ = true;
}

std::chrono::milliseconds view_change::begins(time_point now) {
  const auto since = std::exchange(stands_since_, {});
  at_ = training;
  clock_ = {};
  next_ = {};
  test_phases_ = 0;
  states_missing_ = 0;
  has_entered_ = false;
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - since);
}

bool view_change::drains(clock_id clock) {
  if (at_ != training) {
    early_ = clock;
    return false;
  }
  clock_ = clock;
  at_ = draining;
  return true;
}

bool view_change::has_drained(std::uint64_t test_phases, time_point now) {
  if (at_ != draining) return false;
  test_phases_ = test_phases;
  stands_since_ = now;
  at_ = drained;
  return true;
}

// -- a loss ----------------------------------------------------------------------------------------------

void view_change::freeze(std::set<task> tasks, std::set<seat_id> links, time_point now,
                         const facts& f) {
  if (at_ != training && at_ != draining) return;
  stands_since_ = now;
  early_.reset();  // agreed on in the view that is given up
  working_ = std::move(tasks);
  speaking_ = std::move(links);
  at_ = freezing;
  if (working_.empty() && speaking_.empty()) has_frozen_now(f);
}

bool view_change::silent(seat_id link, const facts& f) {
  if (at_ != freezing || speaking_.erase(link) == 0) return false;
  if (!speaking_.empty() || !working_.empty()) return false;
  has_frozen_now(f);
  return true;
}

bool view_change::left(task of, const facts& f) {
  const bool is_due = ends_a_graph() || at_ == freezing;
  if (!is_due || working_.erase(of) == 0 || !working_.empty() || !speaking_.empty()) return false;
  if (at_ == freezing) {
    has_frozen_now(f);
    return true;
  }
  graph_has_ended();
  return false;
}

/// What it was asked meanwhile it answers now. Where the members have decided already, that is the answer to all of it.
void view_change::has_frozen_now(const facts& f) {
  at_ = frozen;
  if (const auto next = std::exchange(later_, std::nullopt)) return is_told(*next, f);
  answer_those_that_wait(f);
}

// -- to the next view ------------------------------------------------------------------------------------

/// Of all parameters, and since its view began.
bool view_change::has_version(clock_id clock, const facts& f) const {
  const auto whole = f.whole_version ? f.whole_version() : std::nullopt;
  // Who had the version that a view of programs begins with may be lost before another one has got it: then they go back once more.
  const auto first = f.goes_forward ? 0 : value(f.view.first_clock), wanted = value(clock);
  return whole && wanted >= first && wanted <= value(*whole) && value(*whole) - wanted < f.versions;
}

/// It has the parameters that the view begins with. Others may say anything.
bool view_change::can_follow(const frames::next_view& next, const facts& f) const {
  if (has_seat(next.lacking, f.view.seat)) {
    const auto whole = f.whole_version ? f.whole_version() : std::nullopt;
    const auto first = value(next.first_clock);
    // What was on its way may have come since this node has said so.
    return whole && value(*whole) <= first && value(*whole) + 1 >= first;
  }
  if (f.goes_forward) return has_version(next.first_clock, f);
  if (knows_next() || at_ == drained)
    return next.first_clock == clock_ || (at_ == drained && has_version(next.first_clock, f));
  const bool comes_again = begins_again(f.view, next) && f.view.brought(f.view.seat);
  return comes_again || has_version(next.first_clock, f);
}

/// Where nobody can be lost, members agree on a view when all of them wait for it, before the same clock.
void view_change::is_told(const frames::next_view& next, const facts& f) {
  const auto newest = epoch(f.view);
  const bool is_over =
      next.epoch < newest || (next.epoch == newest && !rules_.follows_what_it_has_followed);
  const bool waits = at_ == drained || knows_next();
  if (is_over || (f.survive == 0 && !(waits && next.first_clock == clock_))) return;
  const auto seat = f.view.seat;
  // It has come with a view that is replaced, and has nothing to hand over; or it has missed a view, which said that it is lost.
  const bool gives_nothing = begins_again(f.view, next) && !f.view.had(seat);
  const bool missed_one = next.epoch > newest + 1 && at_ != drained;
  const bool goes = !is_among(next.members, seat) && !f.leaves;
  if (has_seat(next.lost, seat) || (goes && (gives_nothing || missed_one)))
    return end(cause::left_out, next);
  if (!is_still()) {  // it freezes first
    if (!later_ || later_->epoch < next.epoch) later_ = next;
    return does(view_action::freeze{});
  }
  if (is_of_newcomers_alone(f.view, next)) return end(cause::newcomers_alone, next);
  if (!can_follow(next, f)) return end(cause::version_is_gone, next);
  auto gone = layers_gone(f, next);
  if (!gone.empty() && !f.zeroes_lost_state)
    return end(cause::state_is_gone, next, std::move(gone));
  const bool unplanned = at_ == frozen || next.lost != f.view.lost || !is_as_planned(next, f);
  does(view_action::follow{next, unplanned, std::move(gone)});
}

void view_change::follows(frames::next_view next, const facts& f) {
  using why = view_action::end_graph::cause;
  if (knows_next()) {  // nothing of that view has been sent: values and solver state are where they were
    early_.reset();  // agreed on in the view that never begins
    clock_ = next.first_clock;
    next_ = std::move(next);
    if (is_in(during(releasing, ending, discarding))) return;  // it is not built yet
    return f.view.self() == no_worker ? does(view_action::build{})
                                      : does(view_action::end_graph{why::view_is_replaced});
  }
  if (!is_to_leave_its_view()) return;
  const bool again = begins_again(f.view, next) && f.former != facts::former_state::gone;
  clock_ = next.first_clock;
  next_ = std::move(next);
  if (again) {
    has_entered_ = f.former == facts::former_state::arrived;  // it comes once more
    at_ = ending;
    return does(view_action::end_graph{why::former_state_is_taken});
  }
  states_missing_ = f.keepers;
  at_ = states_missing_ > 0 ? releasing : ending;
  states_missing_ > 0 ? does(view_action::release{}) : does(view_action::end_graph{});
}

bool view_change::released() {
  if (at_ != releasing) return false;
  if (--states_missing_ > 0) return true;
  at_ = ending;
  does(view_action::end_graph{});
  return true;
}

void view_change::ends(std::set<task> tasks) {
  at_ = is_in(during(building, waiting)) ? discarding : ending;
  working_ = std::move(tasks);
  if (working_.empty()) graph_has_ended();
}

void view_change::graph_has_ended() {
  at_ = at_ == discarding ? building : rebuilding;
  does(view_action::build{});
}

void view_change::end(cause of, frames::next_view next, std::vector<std::string> layers) {
  does(view_action::end_run{of, std::move(next), std::move(layers)});
}

// -- what the members may need to know -------------------------------------------------------------------

/// Who came with a view in which something has been trained is a member of it.
bool view_change::is_to_come(seat_id seat, const agreed_view& view) const {
  if (!knows_next()) return false;
  const bool once_more = next_.epoch == view.epoch || begins_again(view, next_);
  return view.has(seat) ? once_more && view.brought(seat) : brings(seat);
}

frames::next_view view_change::newest_view(const facts& f) const {
  auto out = knows_next() ? next_ : f.as_told();
  out.epoch = epoch(f.view);
  return out;
}

/// A node that waits for a view which it knows, or has drained for one, stands at its clock.
node_stand view_change::stand(const facts& f) const {
  const auto& view = f.view;
  if (is_among(knows_next() ? next_.witnesses : view.witnesses, view.seat))
    return {std::nullopt, true};
  if (!knows_next() && !is_in(stages::running)) return {};
  const auto whole = f.whole_version ? f.whole_version() : std::nullopt;
  if (at_ != drained && !knows_next()) return {whole, false};
  if (knows_next() && has_seat(next_.lacking, view.seat))
    return {version_id{value(clock_) - 1}, true};
  const bool all_have_values = knows_next() && next_.all_have_values;
  const bool has_values = !view.brought(view.seat) || view.first_clock != clock_ || all_have_values;
  return {has_values ? std::optional(version_id{value(clock_)}) : std::nullopt, true};
}

/// What has been promised, as it is now: this node may have promised some time ago.
membership_facts view_change::facts_of(testimonies said, const facts& f) const {
  const auto& box = page_->box;
  said[f.view.seat].hears = heard(f);
  said[f.view.seat].dead = dead_;
  membership_facts out{.members = box.members(), .witnesses = box.witnesses(), .said = said};
  if (page_->planned) out.planned = voters_of(*page_->planned);
  for (const auto& m : f.view.members)
    if (f.view.brought(m.seat)) out.brought.push_back(m.seat);
  out.survive = f.survive;
  out.goes_forward = f.goes_forward;
  out.disturbed = page_->disturbed;
  out.waits_for_word = !page_->to_be_asked.empty() && page_->ticks < page_->word_until;
  out.has_all_state = [this, &f](const seat_list& stay, version_id first) {
    const auto next = view_of(stay, first, f);
    return !is_of_newcomers_alone(f.view, next) && layers_gone(f, next).empty();
  };
  out.decides = rules_.decides;
  return out;
}

}  // namespace poseidon
