#include "actors/node/leavers.hpp"

#include "actors/membership/view_rules.hpp"
#include "actors/node/node.hpp"

#include <utility>

namespace poseidon {

void leavers::view_begins() {
  if (core_.setup.run->survive == 0) return;  // they go when they have handed over
  const auto& view = core_.view();
  if (std::exchange(since_, view.first_clock) != view.first_clock) of_older_views_.merge(of_view_);
  of_view_.clear();
  std::erase_if(of_older_views_, [&](seat_id s) { return !core_.members.links().contains(s); });
  for (const auto seat : view.before)
    if (!view.has(seat) && core_.members.links().contains(seat)) of_view_.insert(seat);
  look();
}

void leavers::look() {
  if (!core_.view().leads() || !core_.change.is_in(stages::in_view)) return;
  if (all_have_trained()) of_older_views_.merge(std::exchange(of_view_, {}));
  for (const auto seat : std::exchange(of_older_views_, {})) core_.close_link_to(seat, {});
}

/// A clock's gradients are of versions that are at most `staleness` clocks old. So when all of the clock after those are here, each
/// member has the version after the view's first one, and goes back no further.
bool leavers::all_have_trained() const {
  const auto whole = core_.run.whole_version();
  const auto staleness = core_.setup.run->solver.spec.poseidon().staleness();
  return whole && value(*whole) >= value(since_) + 2 + staleness;
}

bool leavers::needs(seat_id seat) const {
  const auto& view = core_.view();
  if (core_.setup.run->survive == 0 || !view.had(seat) || view.has(seat) ||
      has_seat(view.lost, seat))
    return false;
  const auto whole = core_.run.whole_version();
  return !whole || value(*whole) <= value(view.first_clock);
}

}  // namespace poseidon
