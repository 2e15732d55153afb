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

std::optional<version_id> version(std::uint8_t v) {
  return v == no_version ? std::nullopt : std::optional(version_id{v});
}

/// The chapter of a node that others take for the one of `epoch`.
const chapter& heard_of(const node& n, std::uint64_t epoch, mutation broken) {
  const auto& own = n.past()[epoch];
  if (broken != mutation::counts_older_epochs || own.of.members != 0 || n.epoch() >= epoch)
    return own;
  return n.now();
}

const view& view_in(nodes_view nodes, std::uint64_t epoch) {
  static const view none;
  for (const auto* n : nodes)
    if (n->past()[epoch].of.members != 0) return n->past()[epoch].of;
  return none;
}

std::optional<version_id> floor_in(nodes_view nodes, const view& v, mutation broken) {
  auto members = nodes.front()->trainers_of(v);
  if (broken == mutation::floor_ignores_youngest && members.size() > 1) members.pop_back();
  version_floor floor(members.front(), members);
  for (const auto m : members)
    if (const auto whole = version(heard_of(*nodes[value(m)], v.epoch, broken).whole))
      m == members.front() ? (void)floor.reached(*whole) : floor.told(m, *whole);
  return floor.floor();
}

std::string in_epoch(const char* invariant, std::uint64_t epoch) {
  return std::string(invariant) + " in epoch " + std::to_string(epoch);
}

/// What has to hold of a view's members and clocks.
std::string violated_in(nodes_view nodes, const view& v, std::uint8_t made) {
  for (const auto m : nodes.front()->trainers_of(v)) {
    const auto& c = nodes[value(m)]->past()[v.epoch];
    if (made > v.first && c.of.members == 0) return in_epoch("Once", v.epoch);
    if (made > v.first && (c.whole == no_version || made > c.whole + 1))
      return in_epoch("Floor", v.epoch);
  }
  return {};
}

/// What has to hold of a view and the one that it follows.
std::string violated_between(nodes_view nodes, const view& before, const view& v,
                             std::uint8_t made_before, seat_mask dead, mutation broken) {
  seat_list acceptors;
  bool somebody_has_it = false;
  for (const auto m : seats_of(before.members)) {
    const auto& c = nodes[value(m)]->past()[before.epoch];
    if (c.accepted == v) acceptors.push_back(m);
    if (c.whole == no_version) continue;
    somebody_has_it |= c.whole >= v.first;
    if ((v.members & bit(value(m))) != 0 && c.whole < v.first) return in_epoch("Back", v.epoch);
  }
  if (!quorum(acceptors, seats_of(before.members), seats_of(dead),
              nodes.front()->witnesses_of(before)))
    return in_epoch("Chain", v.epoch);
  if (!somebody_has_it || made_before > v.first + 1) return in_epoch("Back", v.epoch);
  if (v.first < before.first) return in_epoch("Monotone", v.epoch);
  const auto floor = floor_in(nodes, before, broken);
  if (floor && value(*floor) > v.first) return in_epoch("NoTwo", v.epoch);
  return {};
}

}  // namespace

seat_list seats_of(seat_mask mask) {
  seat_list out;
  for (std::uint32_t s = 0; mask >> s != 0; ++s)
    if ((mask >> s & 1u) != 0) out.push_back(seat_id{s});
  return out;
}

seat_mask mask_of(const seat_list& seats) {
  seat_mask out = 0;
  for (const auto s : seats) out = static_cast<seat_mask>(out | bit(value(s)));
  return out;
}

std::uint64_t chosen_epoch(const post& p) {
  const auto* c = std::get_if<box::chosen>(&p.what);
  return c != nullptr ? c->epoch : 0;
}

node::node(seat_id self, const view& first, mutation broken, seat_mask witnesses)
    : self_(self), broken_(broken), witnesses_(witnesses), epoch_(first.epoch), past_{} {
  if (first.members == 0) return;
  page().of = first;
  box_ = make_box();
  floor_.emplace(self_, trainers_of(first));
  if (is_witness()) return;
  page().whole = first.first;
  (void)floor_->reached(version_id{first.first});
}

box node::make_box() const {
  const auto& v = now().of;
  return {v.epoch, self_, seats_of(v.members), v, rule_of(broken_), witnesses_of(v)};
}

node_stand node::stand() const {
  if (is_witness() && broken_ == mutation::witness_has_first_version) return {version_id{0}, true};
  return {version(now().whole), drained()};
}

box::knowledge node::knows(const senses& s) const {
  box::knowledge k;
  k.says = {stand(), seats_of(s.hears), seats_of(s.dead)};
  k.next_value = [this, s](const testimonies& all) { return next_value(all, s); };
  return k;
}

/// Whoever is no leader may have noticed a loss of which this model knows nothing: it may propose at any time.
membership_facts node::facts(const testimonies& all, const senses& s) const {
  const auto& v = now().of;
  membership_facts f{.members = seats_of(v.members), .witnesses = witnesses_of(v), .said = all};
  if (broken_ == mutation::witness_has_first_version) f.witnesses.clear();
  const auto stay = static_cast<seat_mask>(v.members & ~s.leavers);
  const bool ends = (stay & ~witnesses_) == 0 && s.joiners == 0;
  if (trainers_of(v).front() == self_ && !ends)
    f.planned = seats_of(static_cast<seat_mask>(stay | s.joiners));
  f.brought = seats_of(static_cast<seat_mask>(v.members & ~v.before));
  f.survive = 1;
  f.disturbed = true;
  f.decides = rule_of(broken_);
  if (broken_ == mutation::plan_waits_for_nobody)
    for (auto& [seat, says] : f.said) says.stand.drained = true;
  return f;
}

std::optional<view> node::next_value(const testimonies& all, const senses& s) const {
  const auto& v = now().of;
  const auto f = facts(all, s);
  const auto next = next_members(f);
  if (!next.is_decided()) return std::nullopt;
  auto first = next.as_planned ? now().drains_at : value(next.first);
  if (next.as_planned && broken_ == mutation::plan_waits_for_nobody) first = now().whole;
  if (broken_ == mutation::returns_to_newest && !next.as_planned)
    for (const auto& [seat, says] : all)
      if (says.stand.whole) first = std::max(first, value(*says.stand.whole));
  return view{epoch_ + 1, mask_of(next.as_planned ? *f.planned : next.members),
              static_cast<std::uint8_t>(first), first == v.first ? v.before : v.members};
}

void node::enter(const view& v) {
  const bool has_values = now().whole != no_version;
  page().frozen = false;  // of a view that is past, only what the invariants ask for is kept
  if (v.epoch == epoch_ + 1 && page().accepted != v) page().accepted = {};
  epoch_ = v.epoch;
  past_[epoch_] = {};
  page().of = v;
  out_ = (v.members & bit(value(self_))) == 0;
  box_.reset();
  floor_.reset();
  if (out_) return;
  box_ = make_box();
  floor_.emplace(self_, trainers_of(v));
  if (!has_values) return;  // it is given them: reach()
  page().whole = v.first;
  (void)floor_->reached(version_id{v.first});
}

void node::settle(box::letters letters, std::vector<post>& out) {
  for (auto& l : letters) out.push_back({self_, l.to, std::move(l.what)});
  if (box_->frozen() && broken_ != mutation::tells_after_freezing) floor_->freeze();
  page().frozen = box_->frozen();
  if (const auto& vote = box_->accepted_vote()) page().accepted = vote->value;
  if (!box_->decided() || doomed_) return;
  const auto next = *box_->decided();
  // The proposer tells those whom the box does not know after those whom it knows.
  if (now().accepted == next)
    for (const auto m : seats_of(next.members))
      if (!has_seat(box_->members(), m)) out.push_back({self_, m, box::chosen{next.epoch, next}});
  enter(next);
}

void node::hear(const post& p, const senses& s, std::vector<post>& out) {
  if (out_) return;
  if (!box_) {  // a newcomer waits for a view
    if (chosen_epoch(p) > epoch_) enter(std::get<box::chosen>(p.what).value);
    return;
  }
  auto what = p.what;
  if (auto* m = std::get_if<box::promise>(&what); m && broken_ == mutation::ignores_accepted)
    m->accepted.reset();
  const bool asks =
      std::holds_alternative<box::prepare>(what) || std::holds_alternative<box::accept>(what);
  const bool forgets = broken_ == mutation::forgets_promise ||
                       (broken_ == mutation::witness_forgets_promise && is_witness());
  if (asks && forgets && !box_->proposes()) box_ = make_box();
  if (broken_ == mutation::hears_older_ballots && chosen_epoch(p) == 0)
    std::visit([&](auto& m) { m.epoch = std::max(m.epoch, epoch_); }, what);
  box::letters letters;
  const auto heard = box_->hear(p.from, what, knows(s), letters);
  settle(std::move(letters), out);
  // A view further on that this node is not in: it has been left out. One that it is in cannot be: it would have promised.
  if (heard == box::hearing::newer && chosen_epoch(p) > epoch_)
    enter(std::get<box::chosen>(p.what).value);
}

void node::propose(const senses& s, std::vector<post>& out) {
  settle(box_->propose(knows(s)), out);
}

void node::look_again(const senses& s, std::vector<post>& out) {
  settle(box_->look_again(knows(s)), out);
}

void node::straggler_limit_over(const senses& s, std::vector<post>& out) {
  settle(box_->straggler_limit_over(knows(s)), out);
}

void node::reach() {
  const auto whole = now().whole == no_version ? now().of.first : now().whole + 1;
  if (floor_->reached(version_id{static_cast<std::uint64_t>(whole)}))
    page().whole = static_cast<std::uint8_t>(whole);
}

bool can_apply(nodes_view nodes, std::uint64_t epoch, std::uint8_t made, mutation broken) {
  const auto& v = view_in(nodes, epoch);
  if (v.members == 0) return false;
  for (const auto m : nodes.front()->trainers_of(v)) {
    const auto& c = heard_of(*nodes[value(m)], epoch, broken);
    if (c.whole == no_version || c.whole + 1 < made || made >= c.drains_at) return false;
  }
  const auto floor = floor_in(nodes, v, broken);
  return floor && value(*floor) >= made;
}

std::uint8_t made_in(nodes_view nodes, std::uint64_t epoch, const made_versions& made) {
  return std::max(made[epoch], view_in(nodes, epoch).first);
}

std::string violated(nodes_view nodes, const made_versions& made, seat_mask dead, mutation broken) {
  std::uint64_t able = 0;
  for (std::uint64_t e = 1; e <= last_epoch; ++e) {
    const auto& v = view_in(nodes, e);
    if (v.members == 0) continue;
    for (const auto* n : nodes)
      if (const auto& other = n->past()[e].of; other.members != 0 && other != v)
        return in_epoch("Agree", e);
    if (auto text = violated_in(nodes, v, made_in(nodes, e, made)); !text.empty()) return text;
    if (const auto& before = view_in(nodes, e - 1); before.members != 0)
      if (auto text = violated_between(nodes, before, v, made_in(nodes, e - 1, made), dead, broken);
          !text.empty())
        return text;
    bool whole_view_trains = true;
    for (const auto m : nodes.front()->trainers_of(v)) {
      const auto& n = *nodes[value(m)];
      whole_view_trains &= (dead & bit(value(m))) == 0;
      whole_view_trains &= n.trains() && n.epoch() == e && !n.now().frozen;
    }
    able += whole_view_trains ? 1 : 0;
  }
  return able > 1 ? "Alone" : "";
}

}  // namespace poseidon::view_model
