// actors/membership/ballot_box.hpp
//
// One member's part in deciding what follows view e: single-decree Paxos among the members of e. Acceptor and proposer in
// one plain object, frames in, letters out. It has no clock, no link and no thread; its owner carries letters and says
// when a time limit is over. Everything may be lost, doubled or reordered: that costs ballots, never agreement. The memory
// is volatile, so a process that has ended must never come back in the same seat.
//
//   proposer   idle --propose--> asking --quorum, and no member that is heard is missing--> voting --quorum--> decided
//              asking, voting --a higher ballot--> idle;  the owner waits for its rank, and proposes again
//   acceptor   prepare: promises the ballot if it is higher than any before.  accept: accepts it if it is no lower
//
// Whoever counts the votes tells all members the view (frames::next_view). Who hears it is done with this box. A member that has
// promised or accepted is frozen: its owner freezes before it sends the letters of that call.
#pragma once
#include "actors/membership/view_rules.hpp"
#include "messages/frames.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace poseidon {

using ballot = frames::ballot;

/// Of the view that a ballot is about; 0: the frame is of no ballot.
[[nodiscard]] std::uint64_t epoch_of_ballot(const frame_header& f);
/// A proposer's question, which a member answers for all time.
[[nodiscard]] bool is_question(const frame_header& f);
[[nodiscard]] testimony testimony_of(const frames::view_promise& f);

class ballot_box {
 public:
  struct letter {
    seat_id to{};
    frame_header frame;
  };
  using letters = std::vector<letter>;
  struct vote {
    ballot number;
    frames::next_view value;
  };
  /// What the owner knows at the moment of a call.
  struct knowledge {
    testimony says;  ///< the stand never changes once the box is frozen
    /// The next view, of what has been promised; empty: there is none yet.
    std::function<std::optional<frames::next_view>(const testimonies&)> next_value;
  };

  /// Members of older views are told `view`. Its witnesses accept, and never propose.
  ballot_box(frames::next_view view, seat_id self, quorum_rule* decides = &quorum);

  /// Begins a ballot above all that this member has seen. Nothing happens once the value is known.
  [[nodiscard]] letters propose(const knowledge& now);
  /// Takes a frame of a ballot in, adds what is to be sent to `out`. One of another view changes nothing.
  void hear(seat_id from, const frame_header& f, const knowledge& now, letters& out);
  /// The promises are looked at again: the owner has ceased to hear somebody, or knows of a death.
  [[nodiscard]] letters look_again(const knowledge& now);
  /// Who has not promised by now is not waited for.
  [[nodiscard]] letters straggler_limit_over(const knowledge& now);

  /// Promises suffice, and members that are heard have not answered: the owner lets the straggler limit begin.
  [[nodiscard]] bool waits_for_stragglers() const { return at_ == step::straggling; }
  [[nodiscard]] bool proposes() const { return at_ != step::idle; }
  [[nodiscard]] bool frozen() const { return promised_.round > 0; }
  /// The view of epoch + 1, where the votes were counted here. Members are told; the owner tells newcomers, after the members.
  [[nodiscard]] const std::optional<frames::next_view>& decided() const { return decided_; }

  [[nodiscard]] std::uint64_t epoch() const { return view_.epoch; }
  [[nodiscard]] const frames::next_view& view() const { return view_; }
  [[nodiscard]] const seat_list& members() const { return members_; }
  [[nodiscard]] const seat_list& witnesses() const { return witnesses_; }
  [[nodiscard]] const std::optional<vote>& accepted_vote() const { return accepted_; }
  /// All that a call can change, to compare two boxes of one member and view.
  [[nodiscard]] auto state() const {
    return std::tie(promised_, accepted_, at_, mine_, seen_, promises_, dead_, limit_over_,
                    in_favour_, value_, decided_);
  }

 private:
  enum class step : std::uint8_t { idle, asking, straggling, voting };

  void hear_one(seat_id from, const frames::view_prepare& m, const knowledge& now, letters& out);
  void hear_one(seat_id from, const frames::view_promise& m, const knowledge& now, letters& out);
  void hear_one(seat_id from, const frames::view_accept& m, const knowledge& now, letters& out);
  void hear_one(seat_id from, const frames::view_accepted& m, const knowledge& now, letters& out);

  [[nodiscard]] frames::view_promise promise(ballot number, const testimony& says) const;
  void close_promises(const knowledge& now, letters& out);
  void count_votes(const knowledge& now, letters& out);
  void note_dead(const testimony& says);
  void give_way_to(ballot other);
  void refused_for(ballot higher);
  void stop();
  void to_others(const frame_header& f, letters& out) const;

  frames::next_view view_;
  seat_id self_;
  seat_list members_, witnesses_;
  quorum_rule* decides_;

  ballot promised_;               // as acceptor
  std::optional<vote> accepted_;  // as acceptor
  step at_ = step::idle;          // as proposer, from here on
  ballot mine_, seen_;            // seen_: the highest that has refused this member
  std::map<seat_id, frames::view_promise> promises_;
  seat_list dead_;  // proved by whoever has promised, and by this member
  bool limit_over_ = false;
  seat_list in_favour_;
  std::optional<frames::next_view> value_;
  std::optional<frames::next_view> decided_;
};

}  // namespace poseidon
