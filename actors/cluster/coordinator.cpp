#include "actors/cluster/coordinator.hpp"

#include "actors/cluster/view.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

coordinator::coordinator(actor_context context, coordinator_setup setup)
    : actor(context), setup_(std::move(setup)), members_(setup_.members) {
  parting_ = setup_.parting;
  epoch_ = setup_.epoch;
  entering_ = setup_.newcomers;
  if (setup_.forming) phase_ = phase::forming;
}

void coordinator::on(const connect_coordinator& m) {
  node_ = m;
}

bool coordinator::all_in(const std::set<seat_id>& seats) const {
  return std::all_of(members_.begin(), members_.end(),
                     [&](const auto& m) { return seats.contains(m.seat); });
}

/// And the leader, which is the oldest, is not.
bool coordinator::all_but_leader_in(const std::set<seat_id>& seats) const {
  return !seats.contains(members_.front().seat) &&
         std::all_of(members_.begin() + 1, members_.end(),
                     [&](const auto& m) { return seats.contains(m.seat); });
}

bool coordinator::is_member(seat_id seat) const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& m) { return m.seat == seat; });
}

// -- the first view -------------------------------------------------------------------------------------

void coordinator::on(const member_joined& m) {
  members_.push_back(m.joiner);
  if (phase_ != phase::gathering || members_.size() < setup_.workers) return;
  phase_ = phase::forming;
  for (const auto& e : members_) entering_.insert(e.seat);
  entering_.erase(members_.front().seat);
  if (setup_.by_schedule) members_wanted_ = setup_.workers;
  tell(node_->view, view_agreed{members_});
}

void coordinator::on(const member_is_ready& m) {
  if (m.epoch != epoch_) return;  // of a view that another one has replaced
  ready_.insert(m.seat);
  // A single node has no view to agree on before it is ready.
  if ((phase_ != phase::forming && phase_ != phase::gathering) || !all_in(ready_)) return;
  if (!std::includes(ready_.begin(), ready_.end(), parting_.begin(), parting_.end())) return;
  phase_ = phase::beginning;
  tell(node_->ready, everyone_ready{epoch_});
}

/// The leader has told all others to train, and before that the clock of a change that is planned for a clock.
void coordinator::on(const everyone_began&) {
  if (phase_ != phase::beginning) return;
  entering_.clear();
  if (routes_ && routes_->clock) return drain_before(*routes_->clock);
  phase_ = phase::standing;
  change_if_wanted();
}

// -- what the next view is to be ------------------------------------------------------------------------

void coordinator::on(const change_wanted& m) {
  const bool in_time = m.clock ? phase_ == phase::beginning : phase_ == phase::standing;
  if (routes_ || !in_time || (setup_.by_schedule && !m.clock)) return;
  routes_ = m;
  change_if_wanted();
}

void coordinator::on(const schedule_ends&) {
  if (routes_) routes_->members = 0;
  end_view_if_drained();
  if (phase_ == phase::refilling) {
    members_wanted_ = 0;
    tell_next_view();
  }
}

void coordinator::on(const newcomer_ready& m) {
  newcomers_[m.newcomer.seat] = m.newcomer;
  if (phase_ == phase::refilling) return tell_next_view();
  setup_.by_schedule ? end_view_if_drained() : change_if_wanted();
}

void coordinator::on(const newcomer_gone& m) {
  newcomers_.erase(m.seat);
  if (entering_.erase(m.seat) == 0) return;
  std::erase_if(members_, [&](const auto& e) { return e.seat == m.seat; });
  ready_.clear();
  ++epoch_;
  tell_next_view();
}

/// Whoever ends all nodes of a job asks them one after the other.
void coordinator::on(const member_leaves& m) {
  if (!is_member(m.seat)) return;
  leavers_.insert(m.seat);
  if (!std::exchange(collecting_, true)) tell_self(leavers_collected{}, setup_.leaving_window);
}

void coordinator::on(const leavers_collected&) {
  collecting_ = false;
  change_if_wanted();
}

void coordinator::change_if_wanted() {
  const bool leave = !collecting_ && !leavers_.empty();
  const bool trains = phase_ == phase::standing ||
                      (setup_.by_schedule && phase_ == phase::draining && drained_.empty());
  if (trains && leave && all_in(leavers_)) return tell(node_->leaves, everyone_leaves{epoch_});
  if (phase_ != phase::standing || setup_.by_schedule) return;
  if (!routes_ && newcomers_.empty() && !leave) return;
  phase_ = phase::holding;
  held_.clear();
  tell(node_->hold, hold_everyone{epoch_});
}

// -- a change -------------------------------------------------------------------------------------------

void coordinator::on(const member_paused& m) {
  if (!m.drained) return held(m);
  if (phase_ != phase::draining || m.clock != clock_) return;
  drained_.insert(m.seat);
  if (all_but_leader_in(drained_)) tell(node_->others, others_wait{clock_, epoch_});
  end_view_if_drained();
}

void coordinator::held(const member_paused& m) {
  if (phase_ != phase::holding) return;
  held_[m.seat] = m.clock;
  if (held_.size() < members_.size()) return;
  const auto latest = std::max_element(held_.begin(), held_.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
  drain_before(latest->second);
  tell(node_->agreed, drain_agreed{clock_, epoch_});
}

void coordinator::drain_before(clock_id clock) {
  phase_ = phase::draining;
  clock_ = clock;
  drained_.clear();
}

/// A schedule's view waits for newcomers that are not ready yet.
void coordinator::end_view_if_drained() {
  if (phase_ != phase::draining || !all_in(drained_)) return;
  const auto wanted = routes_ ? routes_->members : 0;
  if (members_.size() + newcomers_.size() >= wanted) end_view();
}

/// All members stand at the clock.
void coordinator::end_view() {
  told_ = {};
  members_wanted_ = 0;
  if (const auto r = std::exchange(routes_, std::nullopt)) {
    told_.routes = r->routes;
    told_.why = r->why;
    members_wanted_ = r->members;
  }
  if (setup_.by_schedule && members_wanted_ == 0) members_wanted_ = members_.size();
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
  tell_next_view();
}

/// Where a schedule wants more members than are there, newcomers are waited for.
void coordinator::tell_next_view() {
  take_newcomers(members_wanted_);
  phase_ = members_.size() < members_wanted_ ? phase::refilling : phase::forming;
  if (phase_ == phase::refilling) return;
  told_.epoch = epoch_;
  told_.members = members_;
  tell(node_->drained, told_);
}

/// Up to so many members.
void coordinator::take_newcomers(std::size_t members) {
  while (members_.size() < members && !newcomers_.empty()) {
    auto newcomer = newcomers_.extract(newcomers_.begin());
    entering_.insert(newcomer.key());
    members_.push_back(std::move(newcomer.mapped()));
  }
  std::sort(members_.begin(), members_.end(), [](auto& a, auto& b) { return a.seat < b.seat; });
}

/// As nodes want to leave.
std::vector<frames::member> coordinator::who_stays() const {
  std::vector<frames::member> stay;
  for (const auto& m : members_)
    if (!leavers_.contains(m.seat)) stay.push_back(m);
  // All have said so since the change began: they go on, and leave, or end the run together, when it has begun.
  return stay.empty() ? members_ : stay;
}

/// Of too many the highest seats leave, those first that want to; the leader stays, because it knows the schedule.
std::vector<frames::member> coordinator::who_stays_of(std::size_t wanted) const {
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

void coordinator::on(const member_is_done& m) {
  done_.insert(m.seat);
  if (all_but_leader_in(done_))
    tell(node_->others, others_wait{clock_id{value(m.version)}, epoch_});
  if (all_in(done_)) tell(node_->done, everyone_done{epoch_});
}

void coordinator::on(const shut_down&) {
  quit();
}

}  // namespace poseidon
