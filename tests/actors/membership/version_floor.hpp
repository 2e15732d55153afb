// tests/actors/membership/version_floor.hpp
//
// The least version that all members of a view have whole, by what each of them has told: the floor. Nobody goes back below
// it, so shards may write over what is older, and a clock that it has passed is finished for good.
//
// A node that takes part in a change of the view freezes its floor. From then on it tells nobody of newer versions, so no
// other member's floor passes what this node said last, and what it promised to have stays a version that all can go back to.
#pragma once
#include "actors/membership/view_rules.hpp"
#include "messages/ids.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace poseidon {

class version_floor {
 public:
  /// Of one view. All members begin without a version: each tells the view's first one when it has it.
  version_floor(seat_id self, seat_list members)
      : members_(std::move(members)), told_(members_.size()), self_(self) {}

  /// This node has a version whole.
  /// Returns  whether the others are to be told: false once frozen, and for a version that is not newer.
  [[nodiscard]] bool reached(version_id whole) { return note(self_, whole); }
  /// Another member has told. Later words of one member replace earlier ones; older versions and strangers count for nothing.
  void told(seat_id member, version_id whole) { (void)note(member, whole); }
  /// The floor never rises again. The next view has another floor.
  void freeze() { frozen_ = true; }

  [[nodiscard]] bool frozen() const { return frozen_; }
  /// Empty: not all members have told a version yet, so nothing of this view may be written over.
  [[nodiscard]] std::optional<version_id> floor() const {
    const auto least = std::min_element(told_.begin(), told_.end());  // empty is less than any
    return least == told_.end() ? std::nullopt : *least;
  }
  /// What this node stands at: its newest whole version, as of the freeze once frozen.
  [[nodiscard]] std::optional<version_id> own() const { return of(self_); }
  /// What a member has told last; empty: nothing, or it is no member.
  [[nodiscard]] std::optional<version_id> of(seat_id member) const {
    const auto place = place_of(member);
    return place < told_.size() ? told_[place] : std::nullopt;
  }

 private:
  [[nodiscard]] std::size_t place_of(seat_id member) const {
    const auto at = std::lower_bound(members_.begin(), members_.end(), member);
    return at != members_.end() && *at == member ? static_cast<std::size_t>(at - members_.begin())
                                                 : members_.size();
  }
  bool note(seat_id member, version_id whole) {
    const auto place = place_of(member);
    if (frozen_ || place == members_.size() || told_[place] >= whole) return false;
    told_[place] = whole;
    return true;
  }

  seat_list members_;
  std::vector<std::optional<version_id>> told_;  // by place in members_
  seat_id self_;
  bool frozen_ = false;
};

}  // namespace poseidon
