// A node's part in deciding which view follows the newest one: losses, ballots, and whose turn it is.
#include "actors/membership/view_change.hpp"
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

}  // namespace

/// What has been said of an older view is over.
view_change::page& view_change::turn_page(const facts& f) {
  if (is_current(f.view)) return *page_;
  const auto newest = newest_view(f);
  for (const auto seat : newest.lost) lost_.erase(seat);
  page_.emplace(page{ballot_box(newest, f.view.seat, rules_.decides)});
  page_->disturbed = !lost_.empty();
  return *page_;
}

void view_change::plans(frames::next_view next, const facts& f) {
  turn_page(f).planned = std::move(next);
  proposes(f);
}

void view_change::proposes(const facts& f) {
  send(turn_page(f).box.propose(knowledge(f)));
  take_decision(f);
}

void view_change::hears(seat_id from, const frame_header& frame, const facts& f) {
  auto& p = turn_page(f);
  if (is_question(frame) && !is_still() && !rules_.answers_before_it_is_still) {
    if (epoch_of_ballot(frame) == p.box.epoch() && f.survive > 0 && p.waiting.size() < most_waiting)
      p.waiting.emplace_back(from, frame);
    return freeze_if_wanted(f);
  }
  ballot_box::letters out;
  p.box.hear(from, frame, knowledge(f), out);
  send(out);
  take_decision(f);
}

void view_change::answer_those_that_wait(const facts& f) {
  auto& p = turn_page(f);
  if (p.waiting.empty()) return;
  p.turn = std::max(p.turn, p.ticks + next_try);  // after those ballots
  for (const auto& [from, frame] : std::exchange(p.waiting, {})) hears(from, frame, f);
}

/// The votes are counted here: all members have been told, or are told now.
void view_change::take_decision(const facts& f) {
  if (!is_current(f.view) || !page_->box.decided()) return;
  const auto next = *page_->box.decided();
  if (std::exchange(counted_, next.epoch) == next.epoch) return;
  tell_those_that_leave(next, f);
  does(view_action::tell_newcomers{next});
  is_told(next, f);
}

/// Where the newest view has not begun, or no clock of it is finished, those that left with it are not among its members, and still wait.
void view_change::tell_those_that_leave(const frames::next_view& next, const facts& f) {
  const bool comes_once_more = has_entered_ || begins_again(f.view, next);
  const auto drained = comes_once_more ? f.view.before : seats_of(f.view.members);
  for (const auto seat : drained)
    if (!has_seat(page_->box.members(), seat)) does(view_action::send{seat, next});
}

// -- what this node knows -------------------------------------------------------------------------------

seat_list view_change::heard(const facts& f) const {
  seat_list out;
  for (const auto m : page_->box.members())
    if (m == f.view.seat || (has_seat(f.linked, m) && !lost_.contains(m))) out.push_back(m);
  return out;
}

ballot_box::knowledge view_change::knowledge(const facts& f) {
  return {{stand(f), heard(f), dead_},
          [this, &f](const testimonies& said) { return next_value(said, f); }};
}

frames::next_view view_change::view_of(const seat_list& stay, version_id first,
                                       const facts& f) const {
  return view_without_the_lost(page_->box.view(), stay, first, lost_, f.batch);
}

std::optional<frames::next_view> view_change::next_value(const testimonies& said, const facts& f) {
  const auto known = facts_of(said, f);
  const auto next = rules_.next ? rules_.next(known) : next_members(known);
  // Of those that answered, and the others have ended.
  if (next.why == obstacle::nobody_has_a_version)
    page_->nobody_has_all_values = std::all_of(known.members.begin(), known.members.end(),
                                               [&, dead = proved_dead(known.said)](seat_id m) {
                                                 return has_seat(dead, m) || known.said.contains(m);
                                               });
  if (next.as_planned) return page_->planned;
  if (!next.is_decided()) return std::nullopt;
  auto out = view_of(next.members, next.first, f);
  out.lacking = next.lacking;
  out.all_have_values =
      value(next.first) == 0 &&
      all_have_values(without_witnesses(next.members, known.witnesses), known.said);
  return out;
}

bool view_change::is_as_planned(const frames::next_view& next, const facts& f) const {
  if (!f.leads) return true;
  if (!is_current(f.view) || !page_->planned) return false;
  const auto& plan = *page_->planned;
  return plan.epoch == next.epoch && plan.members == next.members &&
         plan.witnesses == next.witnesses && plan.first_clock == next.first_clock &&
         plan.lost == next.lost;
}

// -- losses ---------------------------------------------------------------------------------------------

void view_change::loses(seat_id seat, const std::string& why, fate is, const facts& f) {
  auto& p = turn_page(f);
  lost_[seat] = why;
  p.disturbed = true;
  if (is == fate::dead) return dead(seat, f);
  if (is == fate::may_have_gone_on) {
    p.to_be_asked.insert(seat);
    p.word_until = p.ticks + patience;
  }
  looks_at_promises(f);
}

void view_change::answered(seat_id seat) {
  if (page_ && page_->to_be_asked.erase(seat) > 0 && page_->to_be_asked.empty()) page_->turn = 0;
}

void view_change::dead(seat_id seat, const facts& f) {
  (void)turn_page(f);
  answered(seat);
  if (!has_seat(dead_, seat))
    dead_.insert(std::upper_bound(dead_.begin(), dead_.end(), seat), seat);
  looks_at_promises(f);
}

void view_change::looks_at_promises(const facts& f) {
  auto& p = turn_page(f);
  if (!is_still()) return;
  send(p.box.look_again(knowledge(f)));
  take_decision(f);
}

/// Ballots that it has not heard are lost: there is to be another one.
void view_change::found(seat_id seat, const facts& f) {
  (void)turn_page(f);
  lost_.erase(seat);
  answered(seat);
  std::erase(dead_, seat);
  page_->turn = 0;
}

bool view_change::go_on_without_them(const facts& f) {
  (void)turn_page(f);
  if (lost_.empty()) return false;
  for (const auto& [seat, why] : std::map(lost_)) dead(seat, f);
  page_->turn = 0;
  return true;
}

void view_change::freeze_if_wanted(const facts& f) {
  const auto& p = turn_page(f);  // what has been lost in an older view is over
  const bool trains = at_ == training || at_ == draining;
  if (trains && (!lost_.empty() || !p.waiting.empty())) does(view_action::freeze{});
}

// -- as time passes -------------------------------------------------------------------------------------

void view_change::look(const facts& f) {
  freeze_if_wanted(f);
  if (is_still()) {
    answer_those_that_wait(f);
    if (is_under_way(f.view)) propose_in_turn(f);
  }
  const auto why = why_paused(f);
  seat_list missed;
  for (const auto& [seat, w] : lost_) missed.push_back(seat);
  const bool is_news = !why.empty() && missed != page_->missed;
  if (is_news) page_->missed = std::move(missed);
  does(view_action::show_pause{why, is_news});
  if (is_hopeless(f)) return end(view_action::end_run::cause::values_never_came);
  if (f.wants_end && is_stuck(f)) end(view_action::end_run::cause::told_to_end);
}

void view_change::tick(const facts& f) {
  if (is_under_way(f.view)) ++page_->ticks;
  auto& p = turn_page(f);
  if (p.box.waits_for_stragglers() && ++p.straggling == for_stragglers) waits_no_longer(f);
}

void view_change::waits_no_longer(const facts& f) {
  send(turn_page(f).box.straggler_limit_over(knowledge(f)));
  take_decision(f);
}

void view_change::propose_in_turn(const facts& f) {
  auto& p = *page_;
  seat_list suspects;
  for (const auto& [seat, why] : lost_) suspects.push_back(seat);
  const auto rank = proposer_rank(f.view.seat, p.box.members(), suspects, p.box.witnesses());
  if (!rank) return;
  const auto wait = turn_of_each * static_cast<int>(*rank);
  const bool awaits_answers = p.box.waits_for_stragglers() && p.straggling < for_stragglers;
  if (p.ticks < std::max(p.turn, wait) || awaits_answers) return;
  p.turn = p.ticks + next_try + wait;
  p.straggling = 0;
  proposes(f);
}

/// It has not got all values that it needs to go on, and all other members are proved to have ended, or have answered that they have
/// not got them either.
bool view_change::is_hopeless(const facts& f) const {
  if (!is_under_way(f.view) || !is_still() || stand(f).whole) return false;
  if (page_->nobody_has_all_values) return true;
  const auto others = without_witnesses(page_->box.members(), page_->box.witnesses());
  return std::all_of(others.begin(), others.end(),
                     [&](seat_id m) { return m == f.view.seat || has_seat(dead_, m); });
}

/// Paused, and not only because those that it hears, who are enough to decide, are slow.
bool view_change::is_stuck(const facts& f) const {
  if (why_paused(f).empty()) return false;
  const bool hears_enough = quorum(heard(f), page_->box.members(), dead_, page_->box.witnesses());
  return !hears_enough || page_->ticks >= patience;
}

std::string view_change::why_paused(const facts& f) const {
  if (!is_under_way(f.view) || page_->ticks < until_paused || lost_.empty()) return "";
  const auto& box = page_->box;
  std::string out = "paused: this node hears " + std::to_string(heard(f).size()) + " of " +
                    plural(box.members().size(), "member") + " of view " +
                    std::to_string(box.epoch()) +
                    (box.witnesses().empty() ? "" : " (one of them a witness)") +
                    ", itself included, and the others may go on without it";
  for (const auto& [seat, why] : lost_) out += "; " + why;
  return out;
}

void view_change::send(const ballot_box::letters& letters) {
  for (const auto& l : letters) does(view_action::send{l.to, l.frame});
}

}  // namespace poseidon
