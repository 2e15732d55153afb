// actors/node/agreement.hpp
//
// A node's part in deciding which view follows the newest one: it carries the letters of its ballot_box
// (actors/cluster/ballot_box.hpp) as frames, and says what this node has of the parameters. Every member has one; whoever sees a
// view decided tells all that are concerned. A part of `node`.
//
// The leader proposes when all have drained, and again where a newcomer of that view dies before the view begins. The members of
// the newest view vote, those included that came with it. What they answer holds, because none of them trains on: a node that has
// drained waits for the next view, and so does one that knows a view that has not begun.
#pragma once
#include "actors/cluster/view_ballots.hpp"
#include "actors/node/node_core.hpp"

#include <optional>
#include <vector>

namespace poseidon {

class agreement {
 public:
  explicit agreement(node_core& core) : core_(core) {}

  /// Whether this node may propose what follows the newest view: it has not done so.
  [[nodiscard]] bool is_free() { return box().epoch() > 0 && !wanted_; }
  /// All members of the newest view wait for the next one, which is to be this. Its epoch is higher than theirs.
  void propose(frames::next_view next);
  template <class Frame>
  void hear(seat_id from, const Frame& f) {
    hear_message(from, message_of(f));
  }
  /// The members' decision, once, where this node has counted the votes: they have been told, and those that leave.
  [[nodiscard]] std::optional<frames::next_view> take_decision();
  /// Of the newest view that this node knows, built or not.
  [[nodiscard]] std::uint64_t epoch() { return box().epoch(); }

 private:
  [[nodiscard]] view_box& box();
  void hear_message(seat_id from, const view_box::message& m);
  [[nodiscard]] view_box::knowledge knowledge() const;
  [[nodiscard]] node_stand stand() const;
  void send(const view_box::letters& letters) const;
  void tell_those_that_leave(const frames::next_view& next) const;

  node_core& core_;
  std::optional<view_box> box_;
  std::optional<frames::next_view> wanted_;
  bool decision_taken_ = false;
};

}  // namespace poseidon
