#include "actors/membership/view_rules.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace poseidon {

bool has_seat(const seat_list& list, seat_id seat) {
  return std::binary_search(list.begin(), list.end(), seat);
}

seat_list without_witnesses(const seat_list& members, const seat_list& witnesses) {
  seat_list out;
  std::set_difference(members.begin(), members.end(), witnesses.begin(), witnesses.end(),
                      std::back_inserter(out));
  return out;
}

bool quorum(const seat_list& answers, const seat_list& members, const seat_list& dead,
            const seat_list& witnesses) {
  const auto oldest = std::find_if(members.begin(), members.end(),
                                   [&](seat_id m) { return !has_seat(witnesses, m); });
  if (oldest == members.end()) return false;
  std::size_t in_favour = 0, living = 0, living_silent = 0;
  for (const auto m : members) {
    const bool answered = has_seat(answers, m);
    in_favour += answered ? 1 : 0;
    if (has_seat(dead, m)) continue;
    ++living;
    living_silent += answered ? 0 : 1;
  }
  if (2 * in_favour > members.size()) return true;
  if (2 * in_favour == members.size() && has_seat(answers, *oldest)) return true;
  return living > 0 && living_silent == 0;
}

seat_list proved_dead(const testimonies& from) {
  std::set<seat_id> all;
  for (const auto& [seat, says] : from) all.insert(says.dead.begin(), says.dead.end());
  return {all.begin(), all.end()};
}

seat_list largest_hearing_set(const testimonies& promises, const seat_list& witnesses) {
  const auto dead = proved_dead(promises);
  seat_list candidates;
  for (const auto& [seat, says] : promises)
    if (!has_seat(dead, seat)) candidates.push_back(seat);
  const auto hear_each_other = [&](seat_id a, seat_id b) {
    return a == b || (has_seat(promises.at(a).hears, b) && has_seat(promises.at(b).hears, a));
  };
  seat_list best;
  for (const auto begin : candidates) {
    seat_list taken{begin};
    for (const auto next : candidates)
      if (next != begin && std::all_of(taken.begin(), taken.end(),
                                       [&](seat_id t) { return hear_each_other(t, next); }))
        taken.push_back(next);
    std::sort(taken.begin(), taken.end());
    const auto size = std::pair(taken.size(), without_witnesses(taken, witnesses).size());
    const auto size_of_best = std::pair(best.size(), without_witnesses(best, witnesses).size());
    if (size > size_of_best || (size == size_of_best && taken < best)) best = taken;
  }
  return best;
}

std::optional<std::size_t> proposer_rank(seat_id self, const seat_list& members,
                                         const seat_list& suspects, const seat_list& witnesses) {
  if (!has_seat(members, self) || has_seat(witnesses, self)) return std::nullopt;
  return static_cast<std::size_t>(std::count_if(members.begin(), members.end(), [&](seat_id m) {
    return m < self && !has_seat(suspects, m) && !has_seat(witnesses, m);
  }));
}

}  // namespace poseidon
