#include "actors/node/agreement.hpp"

#include "actors/membership/next_view.hpp"
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

std::uint64_t agreement::epoch() const {
  return core_.change.knows_next() ? core_.change.next().epoch : core_.view().epoch;
}

frames::next_view agreement::newest_view() const {
  auto out = core_.change.knows_next() ? core_.change.next() : as_told(core_.view(), core_.setup);
  out.epoch = epoch();
  return out;
}

view_box& agreement::renew() {
  if (is_current()) return *box_;
  const auto newest = newest_view();
  for (const auto seat : newest.lost) lost_.erase(seat);
  box_.emplace(box_of(newest, core_.view().seat));
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
  auto& b = renew();
  wanted_ = std::move(next);
  send(b.propose(knowledge()));
}

void agreement::hear_message(seat_id from, const view_box::message& m) {
  auto& b = renew();
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
  if (change.knows_next() && has_seat(change.next().lacking, view.seat))
    return {version_id{value(change.clock()) - 1}, true};
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

view_box::knowledge agreement::knowledge() {
  return {{stand(), heard(), dead_}, [this](const testimonies& said) { return next_value(said); }};
}

/// What has been promised, as it is now: this node may have promised some time ago.
membership_facts agreement::facts(testimonies said) const {
  const auto& core = core_;
  said[core.view().seat].hears = heard();
  said[core.view().seat].dead = dead_;
  membership_facts f{.members = box_->members(), .witnesses = box_->witnesses(), .said = said};
  if (wanted_) f.planned = voters_of(*wanted_);
  for (const auto& m : core.view().members)
    if (core.view().brought(m.seat)) f.brought.push_back(m.seat);
  f.survive = core.setup.run->survive;
  f.goes_forward = core.setup.around != nullptr;
  f.disturbed = disturbed_;
  f.waits_for_word = waits_for_word();
  f.has_all_state = [this](const seat_list& stay, version_id first) {
    return has_all_state(core_, view_of(stay, first));
  };
  return f;
}

frames::next_view agreement::view_of(const seat_list& stay, version_id first) const {
  return view_without_the_lost(box_->view(), stay, first, lost_, core_.run.compiled().whole_batch);
}

std::optional<frames::next_view> agreement::next_value(const testimonies& said) {
  const auto f = facts(said);
  const auto next = next_members(f);
  // Of those that answered, and the others have ended.
  if (next.why == obstacle::nobody_has_a_version)
    nobody_has_all_values_ =
        std::all_of(f.members.begin(), f.members.end(), [&, dead = proved_dead(f.said)](seat_id m) {
          return has_seat(dead, m) || f.said.contains(m);
        });
  if (next.as_planned) return wanted_;
  if (!next.is_decided()) return std::nullopt;
  auto out = view_of(next.members, next.first);
  out.lacking = next.lacking;
  out.all_have_values = value(next.first) == 0 &&
                        all_have_values(without_witnesses(next.members, f.witnesses), f.said);
  return out;
}

// -- losses ---------------------------------------------------------------------------------------------

void agreement::lost(seat_id seat, const std::string& why, fate is) {
  auto& b = renew();
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
  auto& b = renew();
  answered(seat);
  if (!has_seat(dead_, seat))
    dead_.insert(std::upper_bound(dead_.begin(), dead_.end(), seat), seat);
  if (is_still()) send(b.look_again(knowledge()));
}

/// Ballots that it has not heard are lost: there is to be another one.
void agreement::found(seat_id seat) {
  (void)renew();
  lost_.erase(seat);
  answered(seat);
  std::erase(dead_, seat);
  turn_ = 0;
}

bool agreement::go_on_without_them() {
  (void)renew();
  if (lost_.empty()) return false;
  for (const auto& [seat, why] : std::map(lost_)) dead(seat);
  turn_ = 0;
  return true;
}

bool agreement::wants_freeze() {
  (void)renew();  // what has been lost in an older view is over
  return !is_still() && (!lost_.empty() || !waiting_.empty());
}

void agreement::look() {
  auto& b = renew();
  if (!is_still()) return;
  if (!waiting_.empty()) turn_ = std::max(turn_, ticks_ + next_try);  // after those ballots
  for (const auto& [from, m] : std::exchange(waiting_, {})) hear_message(from, m);
  if (is_under_way()) propose_in_turn(b);
}

void agreement::tick() {
  if (is_under_way()) ++ticks_;
  if (renew().waits_for_stragglers() && ++straggling_ == for_stragglers)
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

bool agreement::is_hopeless() const {
  if (!is_under_way() || !is_still() || stand().whole) return false;
  if (nobody_has_all_values_) return true;
  const auto others = without_witnesses(box_->members(), box_->witnesses());
  return std::all_of(others.begin(), others.end(),
                     [&](seat_id m) { return m == core_.view().seat || has_seat(dead_, m); });
}

bool agreement::is_stuck() const {
  if (why_paused().empty()) return false;
  const bool hears_enough = quorum(heard(), box_->members(), dead_, box_->witnesses());
  return !hears_enough || ticks_ >= patience;
}

std::string agreement::why_paused() const {
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
