// actors/cluster/frame_turns.hpp - how often each node may say a frame: what is said once for a view is not said twice.
#pragma once
#include "messages/frames.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace poseidon {

/// Of the node that hears them. How often is messages/frame_table.hpp's; frame_rules says who may say a frame, and in which stage.
class frame_turns {
 public:
  /// Counts the frame. Returns  why it may not be said any more, with how often it may; empty: it may.
  [[nodiscard]] std::optional<std::string> refusal_of(const frame_header& h, seat_id from);
  /// The graphs are built anew: what is said once for a view may be said again.
  void next_view() { of_view_.clear(); }
  /// The link to this node has ended; on another one it begins anew.
  void forget(seat_id from);

 private:
  using said = std::map<std::pair<seat_id, std::size_t>, std::size_t>;  // by node and kind
  said of_view_, of_run_;
};

}  // namespace poseidon
