#include "tests/actors/membership/view_model.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::view_model {

namespace {

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
  for (const auto* n : nodes)
    if (n->cannot_follow()) return in_epoch("Follow", n->epoch());
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
