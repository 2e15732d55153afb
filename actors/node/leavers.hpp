// actors/node/leavers.hpp
//
// Those that have left and are still linked. Where nodes may be lost, the next view can begin with the version that this one began
// with. Then the solver state that it began with is handed over once more, also by those that left with it. So they stay until
// no view can begin with that version any more; then the leader says goodbye to them. A part of `node`, without a mailbox. Every
// member remembers them, because each may lead next.
#pragma once
#include "actors/node/node_core.hpp"

#include <set>

namespace poseidon {

class leavers {
 public:
  explicit leavers(const node_core& core) : core_(core) {}

  /// The view has begun.
  void view_begins();
  /// The leader says goodbye to those that no view can need any more.
  void look();
  /// Whether the leader has to look again.
  [[nodiscard]] bool wait() const { return !of_view_.empty(); }
  /// This member has left with the view, and the next one may still need what it has: its goodbye comes too early.
  [[nodiscard]] bool needs(seat_id seat) const;

 private:
  [[nodiscard]] bool all_have_trained() const;

  const node_core& core_;
  clock_id since_{};           // the first clock of the view that they left with
  std::set<seat_id> of_view_;  // that begins with that clock
  std::set<seat_id> of_older_views_;
};

}  // namespace poseidon
