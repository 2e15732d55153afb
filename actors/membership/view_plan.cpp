#include "actors/membership/view_plan.hpp"

#include "actors/membership/view.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

view_plan::view_plan(view_plan_setup setup)
    : workers_(setup.workers),
      by_schedule_(setup.by_schedule),
      stage_(setup.forming ? stage::forming : stage::gathering),
      epoch_(setup.epoch),
      members_(std::move(setup.members)),
      parting_(std::move(setup.parting)),
      entering_(std::move(setup.newcomers)) {}

std::optional<plan::action> view_plan::take_action() {
  if (to_do_.empty()) return std::nullopt;
  auto next = std::move(to_do_.front());
  to_do_.pop_front();
  return next;
}

bool view_plan::all_in(const std::set<seat_id>& seats) const {
  return std::all_of(members_.begin(), members_.end(),
                     [&](const auto& m) { return seats.contains(m.seat); });
}

/// And the leader, which is the oldest, is not.
bool view_plan::all_but_leader_in(const std::set<seat_id>& seats) const {
  return !seats.contains(members_.front().seat) &&
         std::all_of(members_.begin() + 1, members_.end(),
                     [&](const auto& m) { return seats.contains(m.seat); });
}

bool view_plan::is_member(seat_id seat) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& m) { return m.seat == seat; });
}

// -- the first view -------------------------------------------------------------------------------------

void view_plan::joined(const frames::member& joiner) {
  members_.push_back(joiner);
  if (stage_ != stage::gathering || members_.size() < workers_) return;
  stage_ = stage::forming;
  for (const auto& e : members_) entering_.insert(e.seat);
  entering_.erase(members_.front().seat);
  if (by_schedule_) members_wanted_ = workers_;
  to_do_.push_back(plan::agree_on_first_view{members_});
}

void view_plan::ready(seat_id seat, std::uint64_t epoch) {
  if (epoch != epoch_) return;  // of a view that another one has replaced
  ready_.insert(seat);
  // A single node has no view to agree on before it is ready.
  if ((stage_ != stage::forming && stage_ != stage::gathering) || !all_in(ready_)) return;
  if (!std::includes(ready_.begin(), ready_.end(), parting_.begin(), parting_.end())) return;
  stage_ = stage::beginning;
  to_do_.push_back(plan::begin_view{});
}

void view_plan::began() {
  if (stage_ != stage::beginning) return;
  entering_.clear();
  if (wanted_ && wanted_->clock) return drain_before(*wanted_->clock);
  stage_ = stage::standing;
  change_if_wanted();
}

// -- what the next view is to be ------------------------------------------------------------------------

void view_plan::wants(const change_wanted& change) {
  const bool in_time = change.clock ? stage_ == stage::beginning : stage_ == stage::standing;
  if (wanted_ || !in_time || (by_schedule_ && !change.clock)) return;
  wanted_ = change;
  change_if_wanted();
}

void view_plan::schedule_ends() {
  if (wanted_) wanted_->members = 0;
  end_view_if_drained();
  if (stage_ == stage::refilling) {
    members_wanted_ = 0;
    propose_next();
  }
}

void view_plan::newcomer_ready(const frames::member& newcomer) {
  newcomers_[newcomer.seat] = newcomer;
  if (stage_ == stage::refilling) return propose_next();
  by_schedule_ ? end_view_if_drained() : change_if_wanted();
}

void view_plan::newcomer_gone(seat_id seat) {
  newcomers_.erase(seat);
  if (entering_.erase(seat) == 0) return;
  std::erase_if(members_, [&](const auto& e) { return e.seat == seat; });
  ready_.clear();
  ++epoch_;
  propose_next();
}

/// Whoever ends all nodes of a job asks them one after the other.
void view_plan::leaves(seat_id seat) {
  if (!is_member(seat)) return;
  leavers_.insert(seat);
  if (collecting_since_) return;
  collecting_since_ = epoch_;
  to_do_.push_back(plan::collect_leavers{epoch_});
}

/// One that the plan of another leader has asked for, or of an older view, may come late.
void view_plan::leavers_collected(std::uint64_t epoch) {
  if (collecting_since_ != epoch) return;
  collecting_since_.reset();
  change_if_wanted();
}

void view_plan::change_if_wanted() {
  const bool leave = !collecting_since_ && !leavers_.empty();
  const bool trains =
      stage_ == stage::standing || (by_schedule_ && stage_ == stage::draining && drained_.empty());
  if (trains && leave && all_in(leavers_)) {
    to_do_.push_back(plan::end_run{});
    return;
  }
  if (stage_ != stage::standing || by_schedule_) return;
  if (!wanted_ && newcomers_.empty() && !leave) return;
  stage_ = stage::holding;
  held_.clear();
  to_do_.push_back(plan::hold_all{});
}

// -- a change -------------------------------------------------------------------------------------------

void view_plan::drained(seat_id seat, clock_id clock) {
  if (stage_ != stage::draining || clock != clock_) return;
  drained_.insert(seat);
  if (all_but_leader_in(drained_)) to_do_.push_back(plan::others_wait{clock_});
  end_view_if_drained();
}

void view_plan::holds(seat_id seat, clock_id clock) {
  if (stage_ != stage::holding) return;
  held_[seat] = clock;
  if (held_.size() < members_.size()) return;
  const auto latest = std::max_element(held_.begin(), held_.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  drain_before(latest->second);
  to_do_.push_back(plan::drain_all{clock_});
}

void view_plan::drain_before(clock_id clock) {
  stage_ = stage::draining;
  clock_ = clock;
  drained_.clear();
}

/// A schedule's view waits for newcomers that are not ready yet.
void view_plan::end_view_if_drained() {
  if (stage_ != stage::draining || !all_in(drained_)) return;
  const auto wanted = wanted_ ? wanted_->members : 0;
  if (members_.size() + newcomers_.size() >= wanted) end_view();
}

/// All members stand at the clock.
void view_plan::end_view() {
  told_ = {};
  members_wanted_ = 0;
  if (const auto r = std::exchange(wanted_, std::nullopt)) {
    told_.routes = r->routes;
    told_.why = r->why;
    members_wanted_ = r->members;
  }
  if (by_schedule_ && members_wanted_ == 0) members_wanted_ = members_.size();
  auto stay = members_wanted_ > 0 ? who_stays_of(members_wanted_) : who_stays();
  parting_.clear();
  for (const auto& m : without(members_, stay)) {
    parting_.insert(m.seat);
    leavers_.erase(m.seat);
  }
  members_ = std::move(stay);
  ready_.clear();
  entering_.clear();
  if (members_wanted_ == 0) take_newcomers(members_.size() + newcomers_.size());
  ++epoch_;
  propose_next();
}

/// Where a schedule wants more members than are there, newcomers are waited for.
void view_plan::propose_next() {
  take_newcomers(members_wanted_);
  stage_ = members_.size() < members_wanted_ ? stage::refilling : stage::forming;
  if (stage_ == stage::refilling) return;
  told_.epoch = epoch_;
  told_.members = members_;
  to_do_.push_back(told_);
}

/// Up to so many members.
void view_plan::take_newcomers(std::size_t members) {
  while (members_.size() < members && !newcomers_.empty()) {
    auto newcomer = newcomers_.extract(newcomers_.begin());
    entering_.insert(newcomer.key());
    members_.push_back(std::move(newcomer.mapped()));
  }
  std::sort(members_.begin(), members_.end(), [](auto& a, auto& b) { return a.seat < b.seat; });
}

/// As nodes want to leave.
std::vector<frames::member> view_plan::who_stays() const {
  std::vector<frames::member> stay;
  for (const auto& m : members_)
    if (!leavers_.contains(m.seat)) stay.push_back(m);
  // All have said so since the change began: they go on, and leave, or end the run together, when it has begun.
  return stay.empty() ? members_ : stay;
}

/// Of too many the highest seats leave, those first that want to; the leader stays, because it knows the schedule.
std::vector<frames::member> view_plan::who_stays_of(std::size_t wanted) const {
  auto stay = members_;
  while (stay.size() > wanted) {
    const auto leader = std::prev(stay.rend());
    auto leaves = std::find_if(stay.rbegin(), leader,
                               [&](const auto& m) { return leavers_.contains(m.seat); });
    if (leaves == leader) leaves = stay.rbegin();
    stay.erase(std::prev(leaves.base()));
  }
  return stay;
}

void view_plan::done(seat_id seat, version_id version) {
  done_.insert(seat);
  if (all_but_leader_in(done_)) to_do_.push_back(plan::others_wait{clock_id{value(version)}});
  if (all_in(done_)) to_do_.push_back(plan::all_are_done{});
}

}  // namespace poseidon
