// actors/node/agreement.hpp
//
// A node's part in deciding which view follows the newest one: it carries the letters of its ballot_box
// (actors/cluster/ballot_box.hpp) as frames, and says what this node has of the parameters. Every member has one; whoever sees a
// view decided tells all that are concerned. A part of `node`.
//
// The leader proposes when all have drained, and again where a newcomer of that view dies before the view begins. Where a member is
// lost, whoever notices it proposes, the oldest first, a view of those that hear each other. The members of the newest view vote,
// those included that came with it. What they answer has to hold, so a node that trains freezes before it answers; one that has
// drained, or that knows a view which has not begun, waits anyway.
#pragma once
#include "actors/cluster/view_ballots.hpp"
#include "actors/node/node_core.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

class agreement {
 public:
  /// The time between two ticks.
  static constexpr std::chrono::milliseconds tick_length{20};
  explicit agreement(node_core& core) : core_(core) {}

  /// Of the newest view that this node knows, built or not.
  [[nodiscard]] std::uint64_t epoch() { return box().epoch(); }
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

  /// A member of the newest view is gone, or one that leaves with it. `is_dead`: its process is proved to have ended.
  void lost(seat_id seat, const std::string& why, bool is_dead);
  /// The newest view says so.
  [[nodiscard]] bool knows_as_lost(seat_id seat) { return has_seat(box().view().lost, seat); }
  /// This node trains, and has to freeze before it can answer or propose.
  [[nodiscard]] bool wants_freeze();
  /// If this node trains no further, it says what it could not say before, and proposes when it is its turn.
  void look();
  /// Time has passed, one tick_length. As look().
  /// Errors   std::runtime_error: those that are left cannot decide; the text is for the user.
  void tick();
  /// Whether tick() is to be called.
  [[nodiscard]] bool is_under_way() { return !lost_.empty() && !box().decided(); }
  /// This node has a part in another view that is being decided: the newest one must not begin here.
  [[nodiscard]] bool has_promised() { return box().frozen(); }

 private:
  [[nodiscard]] view_box& box();
  void hear_message(seat_id from, const view_box::message& m);
  /// What this node says now stays true until there is another view.
  [[nodiscard]] bool is_still() const;
  [[nodiscard]] view_box::knowledge knowledge() const;
  [[nodiscard]] node_stand stand() const;
  [[nodiscard]] seat_list heard() const;
  [[nodiscard]] std::optional<frames::next_view> next_value(const testimonies& said) const;
  [[nodiscard]] frames::next_view without_the_lost(const next_membership& next) const;
  void propose_in_turn(view_box& b);
  [[nodiscard]] std::string why_undecided() const;
  void send(const view_box::letters& letters) const;
  void tell_those_that_leave(const frames::next_view& next) const;

  node_core& core_;
  std::optional<view_box> box_;
  std::optional<frames::next_view> wanted_;
  bool decision_taken_ = false;
  // Losses, of members of the newest view.
  std::map<seat_id, std::string> lost_;  // and why
  seat_list dead_;
  int ticks_ = 0;       // since the first one was noticed
  int turn_ = 0;        // this node proposes when so many have passed
  int straggling_ = 0;  // since there were promises enough, but for members that are heard
  std::vector<std::pair<seat_id, view_box::message>> waiting_;  // until this node is still
};

}  // namespace poseidon
