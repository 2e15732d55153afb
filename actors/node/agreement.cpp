#include "actors/node/agreement.hpp"

#include "actors/node/node.hpp"
#include "actors/node/state_left.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

namespace {

// In ticks. Of two members that notice a loss the younger one waits for the older one's ballot.
constexpr int turn_of_each = 3;
/// A ballot that has not led to a view by then is followed by another one.
constexpr int next_try = 20;
/// Who is heard and does not answer for so long is left out.
constexpr int for_stragglers = 50;
/// A side on which nothing has been decided for so long is paused, and says so.
constexpr int until_paused = 100;
/// Who has slept waits so long for a word of those that may have gone on, and who is told to end for those that can decide: ten seconds.
constexpr int patience = 500;
/// Frames that wait until this node is still: a few of each member.
constexpr std::size_t most_waiting = 4 * 64;

/// A view that has begun, as those have been told that were there.
frames::next_view as_told(const agreed_view& view, const node_setup& setup) {
  frames::next_view out;
  out.epoch = view.epoch;
  out.first_clock = view.first_clock;
  out.members = view.members;
  out.witnesses = view.witnesses;
  out.lost = view.lost;
  if (!setup.run) return out;  // a joiner is told
  out.routes = numbers_of(setup.run->routes);
  out.factor_rows = setup.run->factor_rows;
  for (const auto& s : setup.run->shares) out.shares.push_back({s.samples, s.replicas});
  return out;
}

}  // namespace

view_box& agreement::box() {
  const auto& view = core_.view();
  const auto& change = core_.change;
  const bool knows_next = change.knows_next();
  const auto newest = knows_next ? change.next().epoch : view.epoch;
  if (box_ && box_->epoch() == newest) return *box_;
  auto next = knows_next ? change.next() : as_told(view, core_.setup);
  next.epoch = newest;
  for (const auto seat : next.lost) lost_.erase(seat);
  box_.emplace(box_of(next, view.seat));
  wanted_.reset();
  decision_taken_ = false;
  ticks_ = turn_ = straggling_ = 0;
  waiting_.clear();
  missed_.clear();
  to_be_asked_.clear();
  disturbed_ = !lost_.empty();
  nobody_has_all_values_ = false;
  return *box_;
}

void agreement::propose(frames::next_view next) {
  auto& b = box();
  wanted_ = std::move(next);
  send(b.propose(knowledge()));
}

void agreement::hear_message(seat_id from, const view_box::message& m) {
  auto& b = box();
  const bool asks =
      std::holds_alternative<view_box::prepare>(m) || std::holds_alternative<view_box::accept>(m);
  if (asks && !is_still()) {
    const bool now = std::visit([](const auto& f) { return f.epoch; }, m) == b.epoch();
    if (now && core_.setup.run->survive > 0 && waiting_.size() < most_waiting)
      waiting_.emplace_back(from, m);
    return;
  }
  view_box::letters out;
  (void)b.hear(from, m, knowledge(), out);
  send(out);
}

std::optional<frames::next_view> agreement::take_decision() {
  if (!box_ || !box_->decided() || std::exchange(decision_taken_, true)) return std::nullopt;
  tell_those_that_leave(*box_->decided());
  return box_->decided();
}

// -- what this node knows -------------------------------------------------------------------------------

bool agreement::is_still() const {
  const auto at = core_.change.at();
  return core_.phase != run_phase::training || at == view_change::step::paused ||
         at == view_change::step::frozen;
}

node_stand agreement::stand() const {
  const auto& change = core_.change;
  if (change.at() == view_change::step::frozen) return {core_.run.whole_version(), false};
  if (change.at() != view_change::step::paused && !change.knows_next()) return {};
  const auto& view = core_.view();
  const bool all_have_values = change.knows_next() && change.next().all_have_values;
  const bool has_values =
      !view.brought(view.seat) || view.first_clock != change.clock() || all_have_values;
  return {has_values ? std::optional(version_id{value(change.clock())}) : std::nullopt, true};
}

seat_list agreement::heard() const {
  seat_list out;
  const auto& links = core_.members.links();
  for (const auto m : box_->members())
    if (m == core_.view().seat || (links.contains(m) && !lost_.contains(m))) out.push_back(m);
  return out;
}

view_box::knowledge agreement::knowledge() const {
  return {{stand(), heard(), dead_}, [this](const testimonies& said) { return next_value(said); }};
}

namespace {

/// Who builds a view that has not begun may still need what it says to have.
bool have_values(const seat_list& trainers, const testimonies& said) {
  return std::all_of(trainers.begin(), trainers.end(), [&](seat_id m) {
    const auto& stand = said.at(m).stand;
    return stand.whole && !stand.drained;
  });
}

}  // namespace

/// What the leader wants, if all that stay in it are there; else those that hear each other go on.
std::optional<frames::next_view> agreement::next_value(testimonies said) const {
  said[core_.view().seat].hears = heard();  // it may have promised some time ago
  said[core_.view().seat].dead = dead_;
  const auto& witnesses = box_->witnesses();
  auto next = next_members(said, box_->members(), {}, &quorum, witnesses);
  const auto dead = proved_dead(said);
  const bool some_lost = next.members != box_->members();
  const bool planned =
      std::all_of(said.begin(), said.end(), [](const auto& s) { return s.second.stand.drained; });
  if (wanted_) {
    const auto wanted = voters_of(*wanted_);
    const bool all_there = std::all_of(wanted.begin(), wanted.end(), [&](seat_id m) {
      return !has_seat(box_->members(), m) || has_seat(next.members, m);
    });
    if (planned && (all_there || core_.setup.run->survive == 0)) return wanted_;
  }
  const bool waits_for_leader = planned && !some_lost && !disturbed_;
  if (core_.setup.run->survive == 0 || waits_for_leader || waits_for_word()) return std::nullopt;
  if (next.is != next_membership::outcome::decided) {
    nobody_has_all_values_ =
        next.is == next_membership::outcome::no_version &&
        std::all_of(box_->members().begin(), box_->members().end(),
                    [&](seat_id m) { return has_seat(dead, m) || said.contains(m); });
    return std::nullopt;
  }
  for (const auto& [seat, says] : said)  // it would need all values again
    if (has_seat(next.members, seat) && !says.stand.whole && !core_.view().brought(seat) &&
        !has_seat(witnesses, seat))
      return std::nullopt;
  leave_out_those_without_values(next, said);
  auto out = without_the_lost(next);
  if (out.members.empty()) return std::nullopt;
  out.all_have_values =
      value(next.first) == 0 && have_values(without_witnesses(next.members, witnesses), said);
  // Others that live may have it, and be heard again. Who left, or was left out of an older view, is not looked for.
  const bool all_dead = std::all_of(out.lost.begin(), out.lost.end(), [&](seat_id s) {
    return has_seat(dead, s) || !has_seat(box_->members(), s);
  });
  return all_dead || has_all_state(core_, out) ? std::optional(std::move(out)) : std::nullopt;
}

/// In iteration 0 the first node is lost, which would give them all values once more. They may join again.
void agreement::leave_out_those_without_values(next_membership& next,
                                               const testimonies& said) const {
  const auto& view = core_.view();
  const auto trainers = without_witnesses(next.members, box_->witnesses());
  const bool have_a_giver =
      std::any_of(trainers.begin(), trainers.end(), [&](seat_id m) { return !view.brought(m); });
  if (have_a_giver || value(next.first) > 0) return;
  std::erase_if(next.members, [&](seat_id m) {
    if (has_seat(box_->witnesses(), m)) return false;
    const auto says = said.find(m);
    return says == said.end() || !says->second.stand.whole;
  });
}

frames::next_view agreement::without_the_lost(const next_membership& next) const {
  auto out = box_->view();
  std::vector<frames::member> stay;
  std::vector<double> weights;
  std::vector<std::uint32_t> replicas;
  for (std::size_t w = 0; w < out.members.size(); ++w) {
    const auto& m = out.members[w];
    if (!has_seat(next.members, m.seat)) {
      out.lost.push_back(m.seat);
      continue;
    }
    stay.push_back(m);
    if (out.shares.empty()) continue;
    weights.push_back(static_cast<double>(out.shares[w].samples));
    replicas.push_back(out.shares[w].replicas);
  }
  std::erase_if(out.witnesses, [&](const auto& w) {
    const bool goes = !has_seat(next.members, w.seat);
    if (goes) out.lost.push_back(w.seat);
    return goes;
  });
  out.why.clear();
  for (const auto& [seat, why] : lost_) {
    if (!has_seat(next.members, seat)) out.lost.push_back(seat);  // or one that leaves
    out.why += (out.why.empty() ? "" : "; ") + why;
  }
  if (out.why.empty()) out.why = "all members hear each other again";
  std::sort(out.lost.begin(), out.lost.end());
  out.lost.erase(std::unique(out.lost.begin(), out.lost.end()), out.lost.end());
  out.epoch = box_->epoch() + 1;
  out.first_clock = clock_id{value(next.first)};
  out.members = std::move(stay);
  out.shares.clear();
  if (weights.empty()) return out;
  const auto batch = out.members.size() * core_.run.compiled().whole_batch;
  for (const auto& s : shares_by_weight(batch, weights, replicas))
    out.shares.push_back({s.samples, s.replicas});
  return out;
}

// -- losses ---------------------------------------------------------------------------------------------

void agreement::lost(seat_id seat, const std::string& why, fate is) {
  auto& b = box();
  lost_[seat] = why;
  disturbed_ = true;
  if (is == fate::dead) return dead(seat);
  if (is == fate::may_have_gone_on) {
    to_be_asked_.insert(seat);
    word_until_ = ticks_ + patience;
  }
  if (is_still()) send(b.look_again(knowledge()));
}

void agreement::answered(seat_id seat) {
  if (to_be_asked_.erase(seat) > 0 && to_be_asked_.empty()) turn_ = 0;
}

void agreement::dead(seat_id seat) {
  auto& b = box();
  answered(seat);
  if (!has_seat(dead_, seat))
    dead_.insert(std::upper_bound(dead_.begin(), dead_.end(), seat), seat);
  if (is_still()) send(b.look_again(knowledge()));
}

/// Ballots that it has not heard are lost: there is to be another one.
void agreement::found(seat_id seat) {
  (void)box();
  lost_.erase(seat);
  answered(seat);
  std::erase(dead_, seat);
  turn_ = 0;
}

bool agreement::go_on_without_them() {
  (void)box();
  if (lost_.empty()) return false;
  for (const auto& [seat, why] : std::map(lost_)) dead(seat);
  turn_ = 0;
  return true;
}

bool agreement::wants_freeze() {
  (void)box();  // what has been lost in an older view is over
  return !is_still() && (!lost_.empty() || !waiting_.empty());
}

void agreement::look() {
  auto& b = box();
  if (!is_still()) return;
  if (!waiting_.empty()) turn_ = std::max(turn_, ticks_ + next_try);  // after those ballots
  for (const auto& [from, m] : std::exchange(waiting_, {})) hear_message(from, m);
  if (is_under_way()) propose_in_turn(b);
}

void agreement::tick() {
  if (is_under_way()) ++ticks_;
  if (box().waits_for_stragglers() && ++straggling_ == for_stragglers)
    send(box_->straggler_limit_over(knowledge()));
  look();
}

void agreement::propose_in_turn(view_box& b) {
  seat_list suspects;
  for (const auto& [seat, why] : lost_) suspects.push_back(seat);
  const auto rank = proposer_rank(core_.view().seat, b.members(), suspects, b.witnesses());
  if (!rank) return;
  const auto wait = turn_of_each * static_cast<int>(*rank);
  const bool awaits_answers = b.waits_for_stragglers() && straggling_ < for_stragglers;
  if (ticks_ < std::max(turn_, wait) || awaits_answers) return;
  turn_ = ticks_ + next_try + wait;
  straggling_ = 0;
  send(b.propose(knowledge()));
}

std::optional<std::string> agreement::pause_news() {
  const auto why = why_paused();
  seat_list missed;
  for (const auto& [seat, w] : lost_) missed.push_back(seat);
  if (why.empty() || missed == missed_) return std::nullopt;
  missed_ = std::move(missed);
  return why;
}

bool agreement::is_hopeless() {
  if (!is_under_way() || !is_still() || stand().whole) return false;
  if (nobody_has_all_values_) return true;
  const auto others = without_witnesses(box_->members(), box_->witnesses());
  return std::all_of(others.begin(), others.end(),
                     [&](seat_id m) { return m == core_.view().seat || has_seat(dead_, m); });
}

bool agreement::is_stuck() {
  if (why_paused().empty()) return false;
  const bool hears_enough = quorum(heard(), box_->members(), dead_, box_->witnesses());
  return !hears_enough || ticks_ >= patience;
}

std::string agreement::why_paused() {
  if (!is_under_way() || ticks_ < until_paused || lost_.empty()) return "";
  std::string out = "paused: this node hears " + std::to_string(heard().size()) + " of " +
                    plural(box_->members().size(), "member") + " of view " +
                    std::to_string(box_->epoch()) +
                    (box_->witnesses().empty() ? "" : " (one of them a witness)") +
                    ", itself included, and the others may go on without it";
  for (const auto& [seat, why] : lost_) out += "; " + why;
  return out;
}

// -- letters --------------------------------------------------------------------------------------------

void agreement::send(const view_box::letters& letters) const {
  for (const auto& l : letters) core_.members.send(l.to, send_frame{frame_of(l.what), {}, 0});
}

/// Where the newest view has not begun, or no clock of it is finished, those that left with it are not among its members, and
/// still wait.
void agreement::tell_those_that_leave(const frames::next_view& next) const {
  const auto& view = core_.view();
  const bool comes_once_more = core_.change.has_entered() || begins_again(view, next);
  const auto drained = comes_once_more ? view.before : seats_of(view.members);
  for (const auto seat : drained)
    if (!has_seat(box_->members(), seat)) core_.members.send(seat, send_frame{next, {}, 0});
}

}  // namespace poseidon
