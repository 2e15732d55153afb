// actors/node/leader_line.hpp
//
// What the leader is to hear of this node, be it another node or this one itself. A part of `node`, which has a `leading`
// here while it leads several nodes.
#pragma once
#include "actors/node/leading.hpp"
#include "actors/node/node_core.hpp"

#include <memory>

namespace poseidon {

class leader_line {
 public:
  explicit leader_line(node_core& core) : core_(core) {}

  /// This node leads from now on.
  leading& lead() { return *(leading_ = std::make_unique<leading>(core_)); }
  /// Null: another node leads, or this node is alone.
  [[nodiscard]] leading* here() const { return leading_.get(); }

  // True: this node is alone, so all are.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] bool done(const frames::worker_done& m) const;

  /// It would begin this clock next, and waits; or it has trained up to it.
  void holds(clock_id clock) const;
  void drained(clock_id clock) const;
  /// This node wants to leave.
  void leaves(const std::string& why) const;
  /// This node has no link to a newcomer of the view that forms.
  void missing(seat_id seat, const std::string& why) const;
  void rate(const link_watch::rate& r) const;
  /// Ends the actors of `leading`.
  void end();

 private:
  [[nodiscard]] frames::member_ready ready_here() const;

  node_core& core_;
  std::unique_ptr<leading> leading_;
};

}  // namespace poseidon
