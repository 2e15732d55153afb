// actors/membership/ballot_box.hpp
//
// One member's part in deciding what follows view e: single-decree Paxos among the members of e. Acceptor and proposer in
// one plain object, messages in, letters out. It has no clock, no link and no thread; its owner carries letters and says
// when a time limit is over. Everything may be lost, doubled or reordered: that costs ballots, never agreement. The memory
// is volatile, so a process that has ended must never come back in the same seat.
//
//   proposer   idle --propose--> asking --quorum, and no member that is heard is missing--> voting --quorum--> chosen
//              asking, voting --a higher ballot--> idle;  the owner waits for its rank, and proposes again
//   acceptor   prepare: promises the ballot if it is higher than any before.  accept: accepts it if it is no lower
//
// The value is a view; it need only be copied and, for agreement's sake, never changed. A member that has promised or
// accepted is frozen: its owner freezes the version floor before it sends the letters of that call.
#pragma once
#include "actors/membership/ballot.hpp"
#include "actors/membership/view_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace poseidon {

template <class Value>
class ballot_box {
 public:
  using all = ballot_messages<Value>;
  using vote = typename all::vote;
  using prepare = typename all::prepare;
  using promise = typename all::promise;
  using accept = typename all::accept;
  using accepted = typename all::accepted;
  using chosen = typename all::chosen;
  using message = typename all::message;
  using letter = typename all::letter;
  using letters = std::vector<letter>;

  /// What the owner knows at the moment of a call.
  struct knowledge {
    testimony says;  ///< the stand never changes once the box is frozen
    /// The next view, of what has been promised; empty: there is none yet.
    std::function<std::optional<Value>(const testimonies&)> next_value;
  };
  enum class hearing {
    heard,
    older,    ///< of a view before this one; who still asks is told this view
    newer,    ///< nothing has changed: the owner asks the sender for the chosen views
    stranger  ///< nothing has changed: the sender is no member of this view
  };

  /// `view` is that of `epoch`, which members of older views are told. `witnesses`: members that accept, and never propose.
  ballot_box(std::uint64_t epoch, seat_id self, seat_list members, Value view,
             quorum_rule* decides = &quorum, seat_list witnesses = {})
      : epoch_(epoch),
        self_(self),
        members_(std::move(members)),
        witnesses_(std::move(witnesses)),
        view_(std::move(view)),
        decides_(decides) {}

  /// Begins a ballot above all that this member has seen. Nothing happens once the value is known.
  [[nodiscard]] letters propose(const knowledge& now);
  /// Takes a message in, adds what is to be sent to `out`.
  hearing hear(seat_id from, const message& what, const knowledge& now, letters& out);
  /// The promises are looked at again: the owner has ceased to hear somebody, or knows of a death.
  [[nodiscard]] letters look_again(const knowledge& now);
  /// Who has not promised by now is not waited for.
  [[nodiscard]] letters straggler_limit_over(const knowledge& now);

  /// Promises suffice, and members that are heard have not answered: the owner lets the straggler limit begin.
  [[nodiscard]] bool waits_for_stragglers() const { return at_ == step::straggling; }
  [[nodiscard]] bool proposes() const { return at_ != step::idle; }
  [[nodiscard]] bool frozen() const { return promised_.round > 0; }
  /// The view of epoch + 1. Members have been told, or said so; the owner tells newcomers, after the members.
  [[nodiscard]] const std::optional<Value>& decided() const { return decided_; }

  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] const Value& view() const { return view_; }
  [[nodiscard]] const seat_list& members() const { return members_; }
  [[nodiscard]] const seat_list& witnesses() const { return witnesses_; }
  [[nodiscard]] const ballot& promised() const { return promised_; }
  [[nodiscard]] const std::optional<vote>& accepted_vote() const { return accepted_; }
  /// All that a call can change, to compare two boxes of one member and view.
  [[nodiscard]] auto state() const {
    return std::tie(promised_, accepted_, at_, mine_, seen_, promises_, dead_, limit_over_,
                    in_favour_, value_, decided_);
  }

 private:
  enum class step : std::uint8_t { idle, asking, straggling, voting };

  void hear_one(seat_id from, const prepare& m, const knowledge& now, letters& out);
  void hear_one(seat_id from, const promise& m, const knowledge& now, letters& out);
  void hear_one(seat_id from, const accept& m, const knowledge& now, letters& out);
  void hear_one(seat_id from, const accepted& m, const knowledge& now, letters& out);
  void hear_one(seat_id, const chosen&, const knowledge&, letters&) {}  // hear() takes it

  void close_promises(const knowledge& now, letters& out);
  void count_votes(const knowledge& now, letters& out);
  void note_dead(const testimony& says) {
    for (const auto s : says.dead)
      if (!has_seat(dead_, s)) dead_.insert(std::upper_bound(dead_.begin(), dead_.end(), s), s);
  }
  /// Ends this member's own ballot, if it has one and another is higher.
  void give_way_to(ballot other) {
    if (other > mine_) stop();
  }
  void refused_for(ballot higher) {
    seen_ = std::max(seen_, higher);
    give_way_to(higher);
  }
  void stop() {
    at_ = step::idle;
    limit_over_ = false;
    promises_.clear();
    dead_.clear();
    in_favour_.clear();
    value_.reset();
  }
  void to_others(const message& m, letters& out) const {
    for (const auto member : members_)
      if (member != self_) out.push_back({member, m});
  }

  std::uint64_t epoch_;
  seat_id self_;
  seat_list members_, witnesses_;
  Value view_;
  quorum_rule* decides_;

  ballot promised_;               // as acceptor
  std::optional<vote> accepted_;  // as acceptor
  step at_ = step::idle;          // as proposer, from here on
  ballot mine_, seen_;            // seen_: the highest that has refused this member
  std::map<seat_id, promise> promises_;
  seat_list dead_;  // proved by whoever has promised, and by this member
  bool limit_over_ = false;
  seat_list in_favour_;
  std::optional<Value> value_;
  std::optional<Value> decided_;
};

template <class Value>
auto ballot_box<Value>::propose(const knowledge& now) -> letters {
  letters out;
  if (decided_ || !has_seat(members_, self_) || has_seat(witnesses_, self_)) return out;
  stop();
  mine_ = promised_ = {std::max(promised_, seen_).round + 1, self_};
  promises_ = {{self_, {epoch_, mine_, mine_, accepted_, now.says}}};
  to_others(prepare{epoch_, mine_}, out);
  close_promises(now, out);
  return out;
}

template <class Value>
auto ballot_box<Value>::hear(seat_id from, const message& what, const knowledge& now, letters& out)
    -> hearing {
  const auto its_epoch = std::visit([](const auto& m) { return m.epoch; }, what);
  if (const auto* news = std::get_if<chosen>(&what)) {  // from anyone: a newcomer may know first
    if (its_epoch > epoch_ + 1) return hearing::newer;
    if (its_epoch <= epoch_) return hearing::older;
    if (!decided_) decided_ = news->value;
    stop();
    return hearing::heard;
  }
  const bool asks = std::holds_alternative<prepare>(what) || std::holds_alternative<accept>(what);
  if (its_epoch < epoch_) {
    if (asks) out.push_back({from, chosen{epoch_, view_}});
    return hearing::older;
  }
  if (its_epoch > epoch_) return hearing::newer;
  if (!has_seat(members_, from)) return hearing::stranger;
  if (decided_) {
    if (asks) out.push_back({from, chosen{epoch_ + 1, *decided_}});
    return hearing::heard;
  }
  std::visit([&](const auto& m) { hear_one(from, m, now, out); }, what);
  return hearing::heard;
}

template <class Value>
void ballot_box<Value>::hear_one(seat_id from, const prepare& m, const knowledge& now,
                                 letters& out) {
  if (m.number == promised_) return;  // doubled: it has been answered
  if (m.number < promised_) {
    out.push_back({from, promise{epoch_, m.number, promised_, std::nullopt, {}}});
    return;
  }
  promised_ = m.number;
  give_way_to(m.number);
  out.push_back({from, promise{epoch_, m.number, m.number, accepted_, now.says}});
}

template <class Value>
void ballot_box<Value>::hear_one(seat_id from, const promise& m, const knowledge& now,
                                 letters& out) {
  if (m.promised > m.number) return refused_for(m.promised);
  if (m.number != mine_ || (at_ != step::asking && at_ != step::straggling)) return;
  promises_.emplace(from, m);
  close_promises(now, out);
}

template <class Value>
void ballot_box<Value>::hear_one(seat_id from, const accept& m, const knowledge&, letters& out) {
  if (m.number >= promised_) {
    promised_ = m.number;
    accepted_ = vote{m.number, m.value};
    give_way_to(m.number);
  }
  out.push_back({from, accepted{epoch_, m.number, promised_}});
}

template <class Value>
void ballot_box<Value>::hear_one(seat_id from, const accepted& m, const knowledge& now,
                                 letters& out) {
  if (m.promised > m.number) return refused_for(m.promised);
  if (m.number != mine_ || at_ != step::voting || has_seat(in_favour_, from)) return;
  in_favour_.insert(std::upper_bound(in_favour_.begin(), in_favour_.end(), from), from);
  count_votes(now, out);
}

template <class Value>
auto ballot_box<Value>::look_again(const knowledge& now) -> letters {
  letters out;
  if (at_ == step::asking || at_ == step::straggling) close_promises(now, out);
  if (at_ == step::voting) count_votes(now, out);
  return out;
}

template <class Value>
auto ballot_box<Value>::straggler_limit_over(const knowledge& now) -> letters {
  letters out;
  if (at_ != step::straggling) return out;  // of a ballot that is over
  limit_over_ = true;
  close_promises(now, out);
  return out;
}

template <class Value>
void ballot_box<Value>::close_promises(const knowledge& now, letters& out) {
  note_dead(now.says);
  seat_list answered;
  testimonies said;
  const vote* highest = nullptr;
  for (const auto& [seat, p] : promises_) {
    answered.push_back(seat);
    said[seat] = p.says;
    note_dead(p.says);
    if (p.accepted && (!highest || p.accepted->number > highest->number)) highest = &*p.accepted;
  }
  at_ = step::asking;
  if (!decides_(answered, members_, dead_, witnesses_)) return;
  const bool complete = std::all_of(members_.begin(), members_.end(), [&](seat_id m) {
    return has_seat(answered, m) || !has_seat(now.says.hears, m) || has_seat(dead_, m);
  });
  at_ = step::straggling;
  if (!complete && !limit_over_) return;
  // What a member of any older quorum has accepted may have been chosen: nothing else is safe then.
  value_ = highest ? std::optional<Value>(highest->value) : now.next_value(said);
  if (!value_) return;
  at_ = step::voting;
  accepted_ = vote{mine_, *value_};
  in_favour_ = {self_};
  to_others(accept{epoch_, mine_, *value_}, out);
  count_votes(now, out);
}

template <class Value>
void ballot_box<Value>::count_votes(const knowledge& now, letters& out) {
  note_dead(now.says);
  if (!decides_(in_favour_, members_, dead_, witnesses_)) return;
  decided_ = value_;
  stop();
  to_others(chosen{epoch_ + 1, *decided_}, out);
}

}  // namespace poseidon
