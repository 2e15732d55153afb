// actors/node/agreement.hpp
//
// A node's part in deciding which view follows the newest one: it carries the letters of its ballot_box
// (actors/membership/ballot_box.hpp) as frames, and says what this node has of the parameters. Every member has one; whoever sees a
// view decided tells all that are concerned. A part of `node`.
//
// The leader proposes when all have drained, and again where a newcomer of that view dies before the view begins. Where a member is
// lost, whoever notices it proposes, the oldest first, a view of those that hear each other. The members of the newest view vote,
// those included that came with it. What they answer has to hold, so a node that trains freezes before it answers; one that has
// drained, or that knows a view which has not begun, waits anyway.
//
// Where too few hear each other, this side is paused: it stands as it is, and goes on where members are found again (`search`), are
// proved to have ended, or where somebody says that they will not come back.
#pragma once
#include "actors/membership/next_members.hpp"
#include "actors/membership/view_ballots.hpp"
#include "actors/node/node_core.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
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
  [[nodiscard]] std::uint64_t epoch() const;
  /// Whether this node may propose what follows the newest view: it has not done so.
  [[nodiscard]] bool is_free() const { return epoch() > 0 && !(is_current() && wanted_); }
  /// All members of the newest view wait for the next one, which is to be this. Its epoch is higher than theirs.
  void propose(frames::next_view next);
  template <class Frame>
  void hear(seat_id from, const Frame& f) {
    hear_message(from, message_of(f));
  }
  /// The members' decision, once, where this node has counted the votes: they have been told, and those that leave.
  [[nodiscard]] std::optional<frames::next_view> take_decision();

  /// What is known of a lost member: nothing; its process is proved to have ended; or it may have gone on without this node, which has
  /// slept meanwhile.
  enum class fate { unknown, dead, may_have_gone_on };
  /// A member of the newest view is gone, or one that leaves with it.
  void lost(seat_id seat, const std::string& why, fate is);
  /// It has been asked (`search`), and it or its machine has answered: it has not gone on.
  void answered(seat_id seat);
  /// A lost member's process is proved to have ended.
  void dead(seat_id seat);
  /// A lost member is linked again.
  void found(seat_id seat);
  /// Somebody who knows says that all that are not heard have ended. False: nobody is missed.
  [[nodiscard]] bool go_on_without_them();
  /// The newest view, for who has not heard of it.
  [[nodiscard]] frames::next_view newest_view() const;
  /// The newest view says so.
  [[nodiscard]] bool knows_as_lost(seat_id seat) const {
    const auto& change = core_.change;
    return has_seat(change.knows_next() ? change.next().lost : core_.view().lost, seat);
  }
  /// This node trains, and has to freeze before it can answer or propose.
  [[nodiscard]] bool wants_freeze();
  /// If this node trains no further, it says what it could not say before, and proposes when it is its turn.
  void look();
  /// Time has passed, one tick_length. As look().
  void tick();
  /// Whether tick() is to be called.
  [[nodiscard]] bool is_under_way() const {
    return is_current() && (disturbed_ || core_.change.has_frozen()) && !box_->decided();
  }
  /// Too few hear each other, for some seconds already. Empty: they do, or this node has said so of the same members before.
  [[nodiscard]] std::optional<std::string> pause_news();
  /// This node has not got all values that it needs to go on, and all other members are proved to have ended, or have answered that
  /// they have not got them either.
  [[nodiscard]] bool is_hopeless() const;
  /// Why nothing is decided; empty: this side is not paused.
  [[nodiscard]] std::string why_paused() const;
  /// Paused, and not only because those that it hears, who are enough to decide, are slow.
  [[nodiscard]] bool is_stuck() const;
  /// The next view is what this node has proposed as its leader.
  [[nodiscard]] bool is_as_wanted(const frames::next_view& next) const {
    return wanted_ && wanted_->epoch == next.epoch && wanted_->members == next.members &&
           wanted_->witnesses == next.witnesses && wanted_->first_clock == next.first_clock &&
           wanted_->lost == next.lost;
  }
  /// This node has a part in another view that is being decided: the newest one must not begin here.
  [[nodiscard]] bool has_promised() const { return is_current() && box_->frozen(); }

 private:
  /// What has been said of an older view is over.
  [[nodiscard]] bool is_current() const { return box_ && box_->epoch() == epoch(); }
  view_box& renew();
  void hear_message(seat_id from, const view_box::message& m);
  /// What this node says now stays true until there is another view.
  [[nodiscard]] bool is_still() const;
  [[nodiscard]] view_box::knowledge knowledge();
  [[nodiscard]] node_stand stand() const;
  [[nodiscard]] seat_list heard() const;
  [[nodiscard]] membership_facts facts(testimonies said) const;
  [[nodiscard]] frames::next_view view_of(const seat_list& stay, version_id first) const;
  /// Of what has been promised.
  [[nodiscard]] std::optional<frames::next_view> next_value(const testimonies& said);
  [[nodiscard]] bool waits_for_word() const {
    return !to_be_asked_.empty() && ticks_ < word_until_;
  }
  void propose_in_turn(view_box& b);
  void send(const view_box::letters& letters) const;
  void tell_those_that_leave(const frames::next_view& next) const;

  node_core& core_;
  std::optional<view_box> box_;
  std::optional<frames::next_view> wanted_;
  bool decision_taken_ = false;
  // Losses, of members of the newest view.
  std::map<seat_id, std::string> lost_;  // and why
  seat_list dead_;
  std::set<seat_id> to_be_asked_;       // they may have gone on
  int word_until_ = 0;                  // in ticks
  bool disturbed_ = false;              // one has been lost, so letters may be, too
  bool nobody_has_all_values_ = false;  // of those that answered, and the others have ended
  seat_list missed_;                    // as pause_news() has said
  int ticks_ = 0;                       // since the first one was noticed
  int turn_ = 0;                        // this node proposes when so many have passed
  int straggling_ = 0;  // since there were promises enough, but for members that are heard
  std::vector<std::pair<seat_id, view_box::message>> waiting_;  // until this node is still
};

}  // namespace poseidon
