#include "actors/membership/ballot_box.hpp"

#include "actors/membership/view.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace poseidon {

namespace {

template <class F>
constexpr bool is_of_ballot =
    std::is_same_v<F, frames::view_prepare> || std::is_same_v<F, frames::view_promise> ||
    std::is_same_v<F, frames::view_accept> || std::is_same_v<F, frames::view_accepted>;

void insert_once(seat_list& list, seat_id seat) {
  if (!has_seat(list, seat)) list.insert(std::upper_bound(list.begin(), list.end(), seat), seat);
}

}  // namespace

std::uint64_t epoch_of_ballot(const frame_header& f) {
  return std::visit(
      []<class F>(const F& m) -> std::uint64_t {
        if constexpr (is_of_ballot<F>)
          return m.epoch;
        else
          return 0;
      },
      f);
}

bool is_question(const frame_header& f) {
  return std::holds_alternative<frames::view_prepare>(f) ||
         std::holds_alternative<frames::view_accept>(f);
}

testimony testimony_of(const frames::view_promise& f) {
  return {{f.whole ? std::optional(f.version) : std::nullopt, f.drained}, f.hears, f.dead};
}

ballot_box::ballot_box(frames::next_view view, seat_id self, quorum_rule* decides)
    : view_(std::move(view)),
      self_(self),
      members_(voters_of(view_)),
      witnesses_(seats_of(view_.witnesses)),
      decides_(decides) {}

frames::view_promise ballot_box::promise(ballot number, const testimony& says) const {
  frames::view_promise out;
  out.epoch = epoch();
  out.number = number;
  out.promised = promised_;
  if (promised_ > number) return out;  // refused
  if (accepted_) {
    out.accepted = accepted_->number;
    out.value = accepted_->value;
  }
  out.whole = says.stand.whole.has_value();
  out.version = says.stand.whole.value_or(version_id{});
  out.drained = says.stand.drained;
  out.hears = says.hears;
  out.dead = says.dead;
  return out;
}

void ballot_box::note_dead(const testimony& says) {
  for (const auto s : says.dead) insert_once(dead_, s);
}

/// Ends this member's own ballot, if it has one and another is higher.
void ballot_box::give_way_to(ballot other) {
  if (other > mine_) stop();
}

void ballot_box::refused_for(ballot higher) {
  seen_ = std::max(seen_, higher);
  give_way_to(higher);
}

void ballot_box::stop() {
  at_ = step::idle;
  limit_over_ = false;
  promises_.clear();
  dead_.clear();
  in_favour_.clear();
  value_.reset();
}

void ballot_box::to_others(const frame_header& f, letters& out) const {
  for (const auto member : members_)
    if (member != self_) out.push_back({member, f});
}

auto ballot_box::propose(const knowledge& now) -> letters {
  letters out;
  if (decided_ || !has_seat(members_, self_) || has_seat(witnesses_, self_)) return out;
  stop();
  mine_ = promised_ = {std::max(promised_, seen_).round + 1, self_};
  promises_ = {{self_, promise(mine_, now.says)}};
  to_others(frames::view_prepare{epoch(), mine_}, out);
  close_promises(now, out);
  return out;
}

void ballot_box::hear(seat_id from, const frame_header& f, const knowledge& now, letters& out) {
  const auto its_epoch = epoch_of_ballot(f);
  if (is_question(f) && its_epoch < epoch()) out.push_back({from, view_});
  if (its_epoch != epoch() || !has_seat(members_, from)) return;
  if (decided_) {
    if (is_question(f)) out.push_back({from, *decided_});
    return;
  }
  std::visit(
      [&]<class F>(const F& m) {
        if constexpr (is_of_ballot<F>) hear_one(from, m, now, out);
      },
      f);
}

void ballot_box::hear_one(seat_id from, const frames::view_prepare& m, const knowledge& now,
                          letters& out) {
  if (m.number == promised_) return;  // doubled: it has been answered
  if (m.number > promised_) {
    promised_ = m.number;
    give_way_to(m.number);
  }
  out.push_back({from, promise(m.number, now.says)});
}

void ballot_box::hear_one(seat_id from, const frames::view_promise& m, const knowledge& now,
                          letters& out) {
  if (m.promised > m.number) return refused_for(m.promised);
  if (m.number != mine_ || (at_ != step::asking && at_ != step::straggling)) return;
  promises_.emplace(from, m);
  close_promises(now, out);
}

void ballot_box::hear_one(seat_id from, const frames::view_accept& m, const knowledge&,
                          letters& out) {
  if (m.number >= promised_) {
    promised_ = m.number;
    accepted_ = vote{m.number, m.value};
    give_way_to(m.number);
  }
  out.push_back({from, frames::view_accepted{epoch(), m.number, promised_}});
}

void ballot_box::hear_one(seat_id from, const frames::view_accepted& m, const knowledge& now,
                          letters& out) {
  if (m.promised > m.number) return refused_for(m.promised);
  if (m.number != mine_ || at_ != step::voting) return;
  insert_once(in_favour_, from);
  count_votes(now, out);
}

auto ballot_box::look_again(const knowledge& now) -> letters {
  letters out;
  if (at_ == step::asking || at_ == step::straggling) close_promises(now, out);
  if (at_ == step::voting) count_votes(now, out);
  return out;
}

auto ballot_box::straggler_limit_over(const knowledge& now) -> letters {
  letters out;
  if (at_ != step::straggling) return out;  // of a ballot that is over
  limit_over_ = true;
  close_promises(now, out);
  return out;
}

void ballot_box::close_promises(const knowledge& now, letters& out) {
  note_dead(now.says);
  seat_list answered;
  testimonies said;
  const frames::view_promise* highest = nullptr;
  for (const auto& [seat, p] : promises_) {
    answered.push_back(seat);
    note_dead(said[seat] = testimony_of(p));
    if (p.accepted.round > 0 && (!highest || p.accepted > highest->accepted)) highest = &p;
  }
  at_ = step::asking;
  if (!decides_(answered, members_, dead_, witnesses_)) return;
  const bool complete = std::all_of(members_.begin(), members_.end(), [&](seat_id m) {
    return has_seat(answered, m) || !has_seat(now.says.hears, m) || has_seat(dead_, m);
  });
  at_ = step::straggling;
  if (!complete && !limit_over_) return;
  // What a member of any older quorum has accepted may have been chosen: nothing else is safe then.
  value_ = highest ? std::optional(highest->value) : now.next_value(said);
  if (!value_) return;
  at_ = step::voting;
  accepted_ = vote{mine_, *value_};
  in_favour_ = {self_};
  to_others(frames::view_accept{epoch(), mine_, *value_}, out);
  count_votes(now, out);
}

void ballot_box::count_votes(const knowledge& now, letters& out) {
  note_dead(now.says);
  if (!decides_(in_favour_, members_, dead_, witnesses_)) return;
  decided_ = value_;
  stop();
  to_others(*decided_, out);
}

}  // namespace poseidon
