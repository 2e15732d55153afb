// tests/actors/membership/view_canon.cpp - the part of a node that can still matter, and the posts that it can still use.
#include "tests/actors/membership/view_model.hpp"

#include <algorithm>
#include <tuple>

namespace poseidon::view_model {

namespace {

/// Numbers one after the other; each list is preceded by its length.
class key_writer {
 public:
  void add(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) text_.push_back(static_cast<char>(n | 0x80));
    text_.push_back(static_cast<char>(n));
  }
  void add(const ballot& b) {
    add(b.round);
    add(value(b.seat));
  }
  void add(const seat_list& seats) { add(mask_of(seats)); }
  void add(const view& v) {
    for (const auto n : {v.epoch, std::uint64_t{v.members}, std::uint64_t{v.first},
                         std::uint64_t{v.before}, std::uint64_t{v.all_have_values}})
      add(n);
  }
  void add(const testimony& t) {
    add(t.stand.whole ? value(*t.stand.whole) + 1 : 0);
    add(t.stand.drained ? 1 : 0);
    add(t.hears);
    add(t.dead);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

const ballot_box* node::ballots() const {
  const auto* const b = change_ ? change_->ballots() : nullptr;
  return b != nullptr && b->epoch() == epoch_ ? b : nullptr;
}

/// A box that has stopped its ballot needs its number no more; one that votes needs no promises.
void node::make_key() {
  key_writer key;
  if (change_) {
    key.add(static_cast<std::uint64_t>(change_->at()) + 1);
    key.add(change_->known_dead());
  }
  if (const auto* const b = ballots()) {
    const auto& [promised, accepted, at, mine, seen, promises, dead, limit_over, in_favour, value,
                 decided] = b->state();
    const bool asks = b->proposes() && !value;
    const auto add_view = [&](const std::optional<frames::next_view>& v) {
      key.add(v ? view_of(*v) : view{});
    };
    key.add(promised);
    key.add(accepted ? accepted->number : ballot{});
    key.add(accepted ? view_of(accepted->value) : view{});
    key.add(static_cast<std::uint64_t>(at));
    key.add(b->proposes() ? mine : ballot{});
    key.add(std::max(promised, seen).round);
    key.add(asks ? promises.size() : 0);
    if (asks)
      for (const auto& [seat, p] : promises) {
        key.add(poseidon::value(seat));
        key.add(testimony_of(p));
        key.add(p.accepted);
        key.add(p.accepted.round > 0 ? view_of(p.value) : view{});
      }
    key.add(dead);
    key.add(asks && limit_over ? 1 : 0);
    key.add(in_favour);
    add_view(value);
    add_view(decided);
  }
  key_ = key.take();
}

bool operator<(const node& a, const node& b) {
  const auto all = [](const node& n) {
    return std::tie(n.self_, n.epoch_, n.out_, n.cannot_follow_, n.key_, n.past_);
  };
  return all(a) < all(b);
}

void node::die() {
  page().frozen = false;
  change_.reset();
  floor_.reset();
  make_key();
}

bool node::can_use(const post& p) const {
  if (out_) return false;
  if (const auto told = chosen_epoch(p); told > 0)
    return told > epoch_ || (told == epoch_ && broken_ == mutation::follows_twice);
  if (!change_) return false;
  const auto& m = p.what;
  if (m.epoch > epoch_) return true;
  if (m.asks() && (broken_ == mutation::forgets_promise ||
                   (broken_ == mutation::witness_forgets_promise && is_witness())))
    return true;
  if (m.epoch < epoch_ && broken_ != mutation::hears_older_ballots) return m.asks();
  const auto* const b = ballots();
  if (b == nullptr) return m.asks();
  const auto& [promised, accepted, at, mine, seen, promises, dead, limit_over, in_favour, value,
               decided] = b->state();
  using kind = message::kind;
  if (m.is == kind::prepare) return m.number > promised;
  if (m.is == kind::accept)
    return m.number > promised ||
           (m.number == promised && !(accepted && accepted->number == m.number));
  if (m.promised != m.number || m.number != mine) return false;
  if (m.is == kind::promise) return b->proposes() && !value && promises.count(p.from) == 0;
  return value && !has_seat(in_favour, p.from);
}

}  // namespace poseidon::view_model
