#include "actors/membership/next_members.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace poseidon {

namespace {

using facts = membership_facts;
using candidate = membership_candidate;

/// The least version of those that train, or the greatest where none can go back. Who has none is given one, and does not count.
std::optional<version_id> version_to_begin_with(const facts& f, const seat_list& trainers) {
  std::optional<version_id> out;
  for (const auto s : trainers) {
    const auto& whole = f.said.at(s).stand.whole;
    if (whole && (!out || (f.goes_forward ? *whole > *out : *whole < *out))) out = whole;
  }
  return out;
}

bool has_values(const facts& f, seat_id seat) {
  const auto says = f.said.find(seat);
  return says != f.said.end() && says->second.stand.whole.has_value();
}

/// In iteration 0 newcomers get all values from those that came before them. Where none of these is left, who has not got them yet cannot
/// have them any more. It may join again. A program that has begun has what is more than parameters, which nobody gives once more.
seat_list with_values(const facts& f, const seat_list& hearing, std::optional<version_id> first) {
  const auto trainers = without_witnesses(hearing, f.witnesses);
  const bool have_a_giver = std::any_of(trainers.begin(), trainers.end(),
                                        [&](seat_id m) { return !has_seat(f.brought, m); });
  if (!first || (!f.goes_forward && (have_a_giver || value(*first) > 0))) return hearing;
  auto stay = hearing;
  std::erase_if(stay, [&](seat_id m) { return !has_seat(f.witnesses, m) && !has_values(f, m); });
  return stay;
}

seat_list lacking(const facts& f, const candidate& c) {
  seat_list out;
  if (f.goes_forward)
    for (const auto m : without_witnesses(c.stay, f.witnesses))
      if (*f.said.at(m).stand.whole < *c.first) out.push_back(m);
  return out;
}

candidate candidate_of(const facts& f) {
  candidate c;
  c.dead = proved_dead(f.said);
  c.hearing = largest_hearing_set(f.said, f.witnesses);
  c.first = version_to_begin_with(f, without_witnesses(c.hearing, f.witnesses));
  c.stay = with_values(f, c.hearing, c.first);
  c.drained = std::all_of(f.said.begin(), f.said.end(),
                          [](const auto& s) { return s.second.stand.drained; });
  return c;
}

bool too_few_hear_each_other(const facts& f, const candidate& c) {
  return without_witnesses(c.hearing, f.witnesses).empty() ||
         !f.decides(c.hearing, f.members, c.dead, f.witnesses);
}

bool nobody_has_a_version(const facts&, const candidate& c) {
  return !c.first;
}

/// All have drained for it, and whoever is a member already, and is to stay one, is there.
bool follows_the_plan(const facts& f, const candidate& c) {
  if (!f.planned || !c.drained) return false;
  const bool all_there = std::all_of(f.planned->begin(), f.planned->end(), [&](seat_id m) {
    return !has_seat(f.members, m) || has_seat(c.hearing, m);
  });
  const bool may_decide = !too_few_hear_each_other(f, c) && !nobody_has_a_version(f, c);
  return (all_there && may_decide) || f.survive == 0;
}

bool losses_end_the_run(const facts& f, const candidate&) {
  return f.survive == 0;
}

bool leader_is_to_propose(const facts& f, const candidate& c) {
  return c.drained && c.hearing == f.members && !f.disturbed;
}

bool word_is_awaited(const facts& f, const candidate&) {
  return f.waits_for_word;
}

bool values_would_be_needed_again(const facts& f, const candidate& c) {
  return !f.goes_forward && std::any_of(c.hearing.begin(), c.hearing.end(), [&](seat_id m) {
    return !has_values(f, m) && !has_seat(f.brought, m) && !has_seat(f.witnesses, m);
  });
}

bool nobody_would_train(const facts& f, const candidate& c) {
  return without_witnesses(c.stay, f.witnesses).empty();
}

/// Who left, or was left out of an older view, is not looked for.
bool lost_ones_may_have_the_state(const facts& f, const candidate& c) {
  const bool all_dead = std::all_of(f.members.begin(), f.members.end(), [&](seat_id m) {
    return has_seat(c.stay, m) || has_seat(c.dead, m);
  });
  return !all_dead && f.has_all_state && !f.has_all_state(c.stay, *c.first);
}

constexpr std::array rules{
    membership_rule{
        obstacle::losses_end_the_run,
        "Where no node keeps a copy of another one's solver state, a loss ends the run.",
        &losses_end_the_run},
    membership_rule{obstacle::leader_is_to_propose,
                    "While all members hear each other and have drained, the leader proposes what "
                    "it has planned.",
                    &leader_is_to_propose},
    membership_rule{obstacle::word_is_awaited,
                    "Who has slept first asks those that may have gone on without it.",
                    &word_is_awaited},
    membership_rule{obstacle::too_few_hear_each_other,
                    "Members that hear each other decide if they are a quorum, and one of them "
                    "trains.",
                    &too_few_hear_each_other},
    membership_rule{obstacle::nobody_has_a_version,
                    "A view begins with a version that one of its members has whole.",
                    &nobody_has_a_version},
    membership_rule{obstacle::values_would_be_needed_again,
                    "Only who came with the standing view is given values once more.",
                    &values_would_be_needed_again},
    membership_rule{obstacle::nobody_would_train, "A view has a member that trains.",
                    &nobody_would_train},
    membership_rule{obstacle::lost_ones_may_have_the_state,
                    "While one that is lost may live, nothing begins without solver state that it "
                    "may have.",
                    &lost_ones_may_have_the_state},
};

}  // namespace

std::span<const membership_rule> membership_rules() {
  return rules;
}

next_membership next_members(const membership_facts& f, obstacle without) {
  const auto c = candidate_of(f);
  if (follows_the_plan(f, c)) return {obstacle::none, true, {}, {}, {}};
  for (const auto& rule : rules)
    if (rule.why != without && rule.forbids(f, c)) return {rule.why, false, {}, {}, {}};
  return {obstacle::none, false, c.stay, c.first.value_or(version_id{}),
          c.first ? lacking(f, c) : seat_list{}};
}

}  // namespace poseidon
