#include "actors/cluster/view_change.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

bool view_change::agree(clock_id clock, bool trains) {
  if (!trains || under_way()) {
    early_ = clock;
    return false;
  }
  clock_ = clock;
  at_ = step::draining;
  return true;
}

bool view_change::brings(seat_id seat) const {
  return std::any_of(next_.members.begin(), next_.members.end(),
                     [&](const auto& m) { return m.seat == seat; });
}

bool view_change::brings_witness(seat_id seat) const {
  return std::any_of(next_.witnesses.begin(), next_.witnesses.end(),
                     [&](const auto& w) { return w.seat == seat; });
}

std::optional<clock_id> view_change::take_early() {
  return std::exchange(early_, std::nullopt);
}

bool view_change::paused(std::uint64_t test_phases, time_point now) {
  if (at_ != step::draining) return false;
  test_phases_ = test_phases;
  paused_since_ = now;
  at_ = step::paused;
  return true;
}

bool view_change::freeze(std::vector<caf::actor_addr> actors, std::set<seat_id> links,
                         time_point now) {
  if (at_ != step::none && at_ != step::draining) return false;
  paused_since_ = now;
  early_.reset();
  leaving_ = std::move(actors);
  speaking_ = std::move(links);
  at_ = leaving_.empty() && speaking_.empty() ? step::frozen : step::freezing;
  return true;
}

bool view_change::silent(seat_id link) {
  if (at_ != step::freezing) return false;
  if (speaking_.erase(link) == 0 || !speaking_.empty() || !leaving_.empty()) return false;
  at_ = step::frozen;
  return true;
}

bool view_change::release(frames::next_view next, std::size_t keepers) {
  if (at_ != step::paused && at_ != step::frozen) return false;
  next_ = std::move(next);
  clock_ = next_.first_clock;
  histories_missing_ = keepers;
  at_ = step::releasing;
  return true;
}

bool view_change::released(const history_released& m) {
  if (at_ != step::releasing) return false;
  if (m.history != nullptr) kept_.histories.push_back(m.history);
  kept_.copies.insert(m.copies.begin(), m.copies.end());
  if (--histories_missing_ > 0) return false;
  at_ = step::leaving;
  return true;
}

bool view_change::release_former(const frames::next_view& next) {
  if (at_ != step::paused && at_ != step::frozen) return false;
  if (!former_.cut && !former_.nothing) return false;
  next_ = next;
  clock_ = next.first_clock;
  kept_ = former_;
  has_entered_ = former_.nothing;  // it comes once more
  at_ = step::leaving;
  return true;
}

std::shared_ptr<const chunk_histories> view_change::copies_of(worker_id owner) const {
  const auto it = kept_.copies.find(owner);
  return it == kept_.copies.end() ? nullptr : it->second;
}

void view_change::leave(std::vector<caf::actor_addr> actors) {
  at_ = step::leaving;
  leaving_ = std::move(actors);
}

bool view_change::left(const caf::actor_addr& actor) {
  if (at_ != step::leaving && at_ != step::freezing) return false;
  if (std::erase(leaving_, actor) == 0 || !leaving_.empty() || !speaking_.empty()) return false;
  at_ = at_ == step::freezing ? step::frozen : step::rebuilding;
  return true;
}

void view_change::enter(clock_id clock, std::uint64_t test_phases, frames::next_view next) {
  clock_ = clock;
  test_phases_ = test_phases;
  next_ = std::move(next);
  at_ = step::rebuilding;
  has_entered_ = true;
}

void view_change::begin_with(std::shared_ptr<const partition> cut,
                             std::shared_ptr<const chunk_histories> state) {
  kept_ = {{std::move(state)}, {}, std::move(cut)};
  at_ = step::rebuilding;
}

bool view_change::replace(frames::next_view next) {
  if (!knows_next()) return false;
  early_.reset();  // agreed on in the view that never begins
  next_ = std::move(next);
  clock_ = next_.first_clock;
  return true;
}

void view_change::rebuild(std::shared_ptr<const partition> before) {
  if (!kept_.cut) kept_.cut = std::move(before);
  has_entered_ = true;
}

std::chrono::milliseconds view_change::resume(time_point now, bool keeps) {
  const auto since = paused_since_;
  const auto early = early_;
  auto kept = keeps ? std::move(kept_) : kept_state{};
  kept.nothing = keeps && !kept.cut;
  *this = {};
  early_ = early;
  former_ = std::move(kept);
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - since);
}

}  // namespace poseidon
