// tests/actors/membership/view_canon.cpp - the part of a node that can still matter, and the posts that it can still use.
#include "tests/actors/membership/view_model.hpp"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <variant>

namespace poseidon::view_model {

namespace {

/// A box that has stopped its ballot needs its number no more; one that votes needs no promises.
auto what_matters_of(const box& b) {
  const auto& [promised, accepted, at, mine, seen, promises, dead, limit_over, in_favour, value,
               decided] = b.state();
  const bool asks = b.proposes() && !value;
  using promise_map = std::decay_t<decltype(promises)>;
  return std::tuple(promised, accepted, at, b.proposes() ? mine : ballot{},
                    std::max(promised, seen).round, asks ? promises : promise_map{}, dead,
                    asks && limit_over, in_favour, value, decided);
}

}  // namespace

bool operator<(const node& a, const node& b) {
  const auto rest = [](const node& n) { return std::tie(n.self_, n.epoch_, n.out_, n.past_); };
  if (rest(a) != rest(b)) return rest(a) < rest(b);
  if (!a.box_ || !b.box_) return !a.box_ && b.box_;
  return what_matters_of(*a.box_) < what_matters_of(*b.box_);
}

void node::die() {
  page().frozen = false;
  box_.reset();
  floor_.reset();
}

bool node::can_use(const post& p) const {
  if (out_) return false;
  if (const auto told = chosen_epoch(p); told > 0) return told > epoch_;
  if (!box_) return false;
  const bool asks =
      std::holds_alternative<box::prepare>(p.what) || std::holds_alternative<box::accept>(p.what);
  const auto its_epoch = std::visit([](const auto& m) { return m.epoch; }, p.what);
  if (its_epoch > epoch_) return true;
  if (asks && (broken_ == mutation::forgets_promise ||
               (broken_ == mutation::witness_forgets_promise && is_witness())))
    return true;
  if (its_epoch < epoch_ && broken_ != mutation::hears_older_ballots) return asks;
  const auto& [promised, accepted, at, mine, seen, promises, dead, limit_over, in_favour, value,
               decided] = box_->state();
  if (const auto* m = std::get_if<box::prepare>(&p.what)) return m->number > promised;
  if (const auto* m = std::get_if<box::accept>(&p.what))
    return m->number > promised ||
           (m->number == promised && !(accepted && accepted->number == m->number));
  if (const auto* m = std::get_if<box::promise>(&p.what))
    return m->promised == m->number && m->number == mine && box_->proposes() && !value &&
           promises.count(p.from) == 0;
  const auto& m = std::get<box::accepted>(p.what);
  return m.promised == m.number && m.number == mine && value && !has_seat(in_favour, p.from);
}

}  // namespace poseidon::view_model
