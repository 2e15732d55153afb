// One node of the model: the product's view_change, and what it does as that asks.
#include "messages/overloaded.hpp"
#include "tests/actors/membership/view_model.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::view_model {

namespace {

bool minority_quorum(const seat_list& answers, const seat_list& members, const seat_list&,
                     const seat_list&) {
  return 2 * answers.size() + 1 >= members.size();
}

/// As quorum(), of the members that are not proved dead.
bool shrunk_quorum(const seat_list& answers, const seat_list& members, const seat_list& dead,
                   const seat_list& witnesses) {
  const auto living = static_cast<seat_mask>(mask_of(members) & ~mask_of(dead));
  return quorum(seats_of(static_cast<seat_mask>(mask_of(answers) & living)), seats_of(living), {},
                witnesses);
}

quorum_rule* rule_of(mutation m) {
  if (m == mutation::minority_decides) return &minority_quorum;
  if (m == mutation::proofs_shrink_majority) return &shrunk_quorum;
  return &quorum;
}

/// Whoever is no leader may have noticed a loss of which this model knows nothing: it may propose at any time.
next_membership next_of(membership_facts f, mutation broken) {
  f.disturbed = true;
  if (broken == mutation::witness_has_first_version) f.witnesses.clear();
  if (broken == mutation::plan_waits_for_nobody)
    for (auto& [seat, says] : f.said) says.stand.drained = true;
  auto next = next_members(f);
  if (broken == mutation::returns_to_newest && !next.as_planned)
    for (const auto& [seat, says] : f.said)
      if (says.stand.whole) next.first = std::max(next.first, *says.stand.whole);
  return next;
}

}  // namespace

node::node(seat_id self, const view& first, mutation broken, seat_mask witnesses)
    : self_(self), broken_(broken), witnesses_(witnesses), epoch_(0), past_{} {
  if (first.members != 0) enter(first);
  if (first.members != 0 && !is_witness()) {
    page().whole = first.first;
    (void)floor_->reached(version_id{first.first});
  }
  make_key();
}

view_change node::new_change() const {
  view_change_rules rules;
  rules.decides = rule_of(broken_);
  rules.next = [broken = broken_](const membership_facts& f) { return next_of(f, broken); };
  rules.answers_before_it_is_still = broken_ == mutation::answers_as_it_trains;
  rules.follows_what_it_has_followed = broken_ == mutation::follows_twice;
  return view_change(std::move(rules));
}

view_facts node::facts(const senses& s) const {
  view_facts f{.view = standing_, .linked = seats_of(s.hears), .survive = 1, .versions = 2};
  f.leaves = (s.leavers & bit(value(self_))) != 0;
  f.whole_version = [this]() -> std::optional<version_id> {
    if (now().whole == no_version) return std::nullopt;
    return version_id{now().whole};
  };
  f.as_told = [this] { return told(now().of); };
  return f;
}

// -- what it does ----------------------------------------------------------------------------------------

void node::enter(const view& v) {
  const bool has_values = now().whole != no_version;
  const auto next = told(v);
  const bool follows = epoch_ > 0 && v.epoch <= epoch_ + 1;
  page().frozen = false;  // of a view that is past, only what the invariants ask for is kept
  if (v.epoch == epoch_ + 1 && page().accepted != v) page().accepted = {};
  if (follows) {
    standing_ = following(standing_, next);
  } else {
    standing_ = {};
    standing_.seat = self_;
    standing_.epoch = v.epoch;
    standing_.members = next.members;
    standing_.witnesses = next.witnesses;
    standing_.first_clock = next.first_clock;
    standing_.before = seats_of(static_cast<seat_mask>(v.before & ~witnesses_));
  }
  epoch_ = v.epoch;
  past_[epoch_] = {};
  page().of = v;
  out_ = (v.members & bit(value(self_))) == 0;
  floor_.reset();
  if (out_) return change_.reset();
  if (!change_) change_ = new_change();
  is_witness() ? change_->enters(next.first_clock, 0, next) : (void)change_->begins({});
  floor_.emplace(self_, trainers_of(v));
  if (!has_values) return;  // it is given them: reach()
  page().whole = v.first;
  (void)floor_->reached(version_id{v.first});
}

/// What has been said is written down before anything comes of it.
void node::note() {
  if (!change_) return;
  const auto* const b = ballots();
  const bool promised = b != nullptr && b->frozen();
  page().frozen = change_->at() == node_stage::frozen || (promised && change_->is_still());
  if (change_->is_still() && promised && broken_ != mutation::tells_after_freezing)
    floor_->freeze();
  if (b != nullptr && b->accepted_vote()) page().accepted = view_of(b->accepted_vote()->value);
}

void node::act(const senses& s, std::vector<post>& out) {
  using namespace view_action;
  for (note(); change_; note()) {
    const auto action = change_->take_action();
    if (!action) break;
    std::visit(overloaded{
                   [&](const view_action::send& a) {
                     const auto what = message_of(a.frame);
                     // It has no link to one that it has gone on without; where that one asks, its new link is answered.
                     const bool is_news = chosen_epoch({self_, a.to, what}) > epoch_;
                     if (!is_news || !has_seat(standing_.lost, a.to))
                       out.push_back({self_, a.to, what});
                   },
                   [&](const view_action::freeze&) { freeze(s); },
                   [&](const tell_newcomers& a) {
                     for (const auto& m : a.next.members)
                       if (!has_seat(ballots()->members(), m.seat))
                         out.push_back({self_, m.seat, chosen(view_of(a.next))});
                   },
                   [&](const follow& a) {
                     if (!doomed_) change_->follows(a.next, facts(s));
                   },
                   [&](const end_graph&) { change_->ends({}); },
                   [&](const build&) { enter(view_of(change_->next())); },
                   [&](const end_run& a) {
                     cannot_follow_ = a.of == end_run::cause::version_is_gone;
                     enter(view_of(a.next));
                     out_ = true;
                     change_.reset();
                   },
                   [](const auto&) {},  // there is no state to be released, and nobody to tell
               },
               *action);
  }
  make_key();
}

void node::freeze(const senses& s) {
  change_->freeze({}, {}, {}, facts(s));
}

void node::learn(const senses& s) {
  for (const auto d : seats_of(s.dead))
    if (d != self_ && !has_seat(change_->known_dead(), d)) change_->dead(d, facts(s));
}

/// It begins anew with each question.
void node::forget_promises() {
  const auto at = change_->at();
  change_ = new_change();
  if (is_witness()) return change_->enters(standing_.first_clock, 0, told(now().of));
  (void)change_->begins({});
  if (at == node_stage::drained && change_->drains(clock_id{now().drains_at}))
    (void)change_->has_drained(0, {});
  if (at == node_stage::frozen) freeze({});
}

void node::hear(const post& p, const senses& s, std::vector<post>& out) {
  if (out_) return;
  if (!change_) {  // a newcomer waits for a view
    if (chosen_epoch(p) > epoch_) enter(p.what.value);
    return make_key();
  }
  auto what = p.what;
  if (what.is == message::kind::promise && broken_ == mutation::ignores_accepted)
    what.accepted = {};
  const bool forgets = broken_ == mutation::forgets_promise ||
                       (broken_ == mutation::witness_forgets_promise && is_witness());
  if (what.asks() && forgets && !(ballots() && ballots()->proposes())) forget_promises();
  if (broken_ == mutation::hears_older_ballots && what.is != message::kind::chosen)
    what.epoch = std::max(what.epoch, epoch_);
  learn(s);
  act(s, out);
  if (!change_) return;
  if (what.is != message::kind::chosen)
    change_->hears(p.from, frame_of(what), facts(s));
  else if (!is_witness())
    before_heard_ = what.value.before, change_->is_told(told(what.value), facts(s));
  else if (what.epoch > epoch_)
    enter(what.value);
  act(s, out);
}

/// What the leader has planned with all that has drained.
std::optional<frames::next_view> node::plan(const senses& s) const {
  const auto& v = now().of;
  const bool waits = broken_ != mutation::plan_waits_for_nobody;
  const auto stay = static_cast<seat_mask>(v.members & ~s.leavers);
  const bool ends = (stay & ~witnesses_) == 0 && s.joiners == 0;
  const auto first = waits ? now().drains_at : now().whole;
  if (trainers_of(v).front() != self_ || ends || (waits && !drained()) || first == no_version)
    return std::nullopt;
  auto out = told({epoch_ + 1, static_cast<seat_mask>(stay | s.joiners), first, 0});
  out.lost.clear();
  return out;
}

void node::propose(const senses& s, std::vector<post>& out) {
  if (is_witness()) return;
  learn(s);
  if (!change_->is_still()) freeze(s);
  act(s, out);
  if (!trains()) return;
  const auto next = plan(s);
  next ? change_->plans(*next, facts(s)) : change_->proposes(facts(s));
  act(s, out);
}

void node::look_again(const senses& s, std::vector<post>& out) {
  learn(s);
  change_->looks_at_promises(facts(s));
  act(s, out);
}

void node::straggler_limit_over(const senses& s, std::vector<post>& out) {
  learn(s);
  change_->waits_no_longer(facts(s));
  act(s, out);
}

void node::reach() {
  const auto whole = now().whole == no_version ? now().of.first : now().whole + 1;
  if (!floor_->reached(version_id{static_cast<std::uint64_t>(whole)})) return;
  page().whole = static_cast<std::uint8_t>(whole);
  if (now().whole == now().drains_at) (void)change_->has_drained(0, {});
  make_key();
}

void node::drain_at(std::uint8_t version) {
  page().drains_at = version;
  if (change_->at() == node_stage::training) (void)change_->drains(clock_id{version});
  if (now().whole == version) (void)change_->has_drained(0, {});
  make_key();
}

}  // namespace poseidon::view_model
