// actors/parameters/whole_gate.hpp
//
// Keeps the gradients of a side branch back (models/net/side_branches.hpp) until this node has all parameters that its clock
// begins with. A version is applied when all nodes have sent their gradients of the clock before, so it is at most s + 1 ahead
// of the newest version that any node has as a whole, and parameter_store still has that one. Elsewhere in the net nothing
// waits: a gradient is complete when all parameters have been read. Bookkeeping only.
#pragma once
#include "messages/ids.hpp"

#include <cstdint>
#include <deque>
#include <utility>

namespace poseidon {

class whole_gate {
 public:
  /// `waits`: of a side branch.
  whole_gate(bool waits, std::uint64_t staleness) : waits_(waits), staleness_(staleness) {}

  /// Whether the gradient of this clock may go now; if not, open() sends it later.
  [[nodiscard]] bool admits(clock_id clock) {
    if (!waits_ || value(clock) < end_) return true;
    held_.push_back(clock);
    return false;
  }
  /// This node has all parameters of `version`. Calls `send` with each clock whose gradient may go now, in order.
  template <class Send>
  void open(version_id version, Send send) {
    end_ = value(version) + staleness_ + 1;
    while (!held_.empty() && value(held_.front()) < end_) {
      const auto clock = held_.front();
      held_.pop_front();
      send(clock);
    }
  }

 private:
  bool waits_;
  std::uint64_t staleness_;
  std::uint64_t end_ = 0;  // clocks before it may go
  std::deque<clock_id> held_;
};

}  // namespace poseidon
