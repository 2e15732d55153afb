// actors/membership/view_rules.hpp
//
// Who may decide which view is next, and who hears whom: pure functions on seats. The members of view e decide view e + 1 by one
// single-decree Paxos (ballot_box). What they decide on is next_members.hpp.
//
// Why two views never follow one: any two majorities of one view share a member. Proofs of death add a second kind of
// quorum, all members that are not proved dead, because such a set holds every living member that can have accepted or
// learnt a view. A majority of them would not do: members 0, 1 and 2, of which 1 and 2 do not hear each other; 0 and 2
// choose {0, 2}, and 0 dies before it says so. Then 1 would be a majority of itself and 2 with the oldest, and go on alone,
// and 2 alone in {0, 2} as well (docs/decisions/038).
//
// A witness (045) is a member that trains nothing: it counts in quorums, and nowhere else. It has no version, leads nothing
// and proposes nothing, so it is never the oldest. No view follows without a member that trains and has promised, and that one
// gives no gradients any more; so a view's clocks end with it, as they do without a witness.
#pragma once
#include "messages/ids.hpp"
#include "models/ids.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace poseidon {

/// Rising, each once: the first is the oldest.
using seat_list = std::vector<seat_id>;

/// What a node has of the parameters at the moment when it freezes.
struct node_stand {
  /// The newest version that it has whole; empty: none yet, as a newcomer, or a witness, which never has one.
  std::optional<version_id> whole;
  bool drained = false;  ///< it has trained up to the clock of a planned change, and holds
  auto operator<=>(const node_stand&) const = default;
};

/// What a member says when it promises.
struct testimony {
  node_stand stand;
  seat_list hears;  ///< whom it hears; itself may be among them
  seat_list dead;   ///< whose process is proved to have ended
  auto operator<=>(const testimony&) const = default;
};
using testimonies = std::map<seat_id, testimony>;  ///< by the member that said it

using quorum_rule = bool(const seat_list& answers, const seat_list& members, const seat_list& dead,
                         const seat_list& witnesses);

/// Whether those who answer may decide for the members of a view: more than half of them, half of them with the oldest that is no
/// witness, or all that are not proved dead. Answers of others do not count. False while there is no member, or none that lives.
/// `witnesses`, here and below: which of the members are.
[[nodiscard]] bool quorum(const seat_list& answers, const seat_list& members, const seat_list& dead,
                          const seat_list& witnesses = {});

/// The members that at least one of these has proved dead.
[[nodiscard]] seat_list proved_dead(const testimonies& from);

/// Of those who promise and are not proved dead, a set whose members hear each other: the largest that is found by taking
/// one and then, by seat, each other that hears all taken and is heard by them. Of equally large ones the one with fewer
/// witnesses, then the one with the older seats, so that of a pair that does not hear each other the younger goes.
[[nodiscard]] seat_list largest_hearing_set(const testimonies& promises,
                                            const seat_list& witnesses = {});

/// How many delays a member waits for a prepare of an older one before it proposes itself: the number of older members that
/// propose and that it does not suspect; 0: it proposes at once. Empty: it is no member, or a witness.
[[nodiscard]] std::optional<std::size_t> proposer_rank(seat_id self, const seat_list& members,
                                                       const seat_list& suspects,
                                                       const seat_list& witnesses = {});

/// The members that train.
[[nodiscard]] seat_list without_witnesses(const seat_list& members, const seat_list& witnesses);

/// Whether `seat` is in the list.
[[nodiscard]] bool has_seat(const seat_list& list, seat_id seat);

}  // namespace poseidon
