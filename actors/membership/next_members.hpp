// actors/membership/next_members.hpp
//
// Who is in the view that follows the newest one, and from which version it trains, or why there is none yet: one pure function of what
// the members have said. Whoever proposes asks it, with what it was promised: the leader whose plan all have drained for, and any
// member that has noticed a loss.
//
// It takes the members that hear each other and the least version that they have whole: nets train again what comes after it. Programs
// go forward: the greatest version that one of them has whole, which those that have it give to the others. Then the rules are asked, one after the other,
// as they stand in the list: the first that forbids the candidate says why there is no view. A rule is one sentence and one test, and
// the model of tests/actors/membership can leave each out.
#pragma once
#include "actors/membership/view_rules.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace poseidon {

/// What one member knows when it has to propose what follows the newest view.
struct membership_facts {
  seat_list members{};    ///< that decide: those of the newest view, with its witnesses
  seat_list witnesses{};  ///< those of `members` that train nothing
  /// By each member that has promised, and by this one as it stands now.
  testimonies said{};
  /// The members, with witnesses and newcomers, of the view that this node has planned as the leader; empty: it has planned none.
  std::optional<seat_list> planned{};
  /// Members of the standing view that came with it: until that has trained a clock they may lack values and solver state of it.
  seat_list brought{};
  /// 0: a loss ends the run, so nobody but the leader proposes anything.
  std::uint32_t survive = 0;
  /// Programs compute: one that has a version whole may have made its step with it, and cannot go back.
  bool goes_forward = false;
  bool disturbed = false;  ///< a member of the newest view has been lost, so letters may be, too
  bool waits_for_word = false;  ///< of one that may have gone on without this node
  /// Whether those that stay have all solver state that a view from this version on needs. Asked last, as it may look at every chunk.
  std::function<bool(const seat_list& members, version_id first)> has_all_state = nullptr;
  quorum_rule* decides = &quorum;
};

/// Why no view follows yet.
enum class obstacle : std::uint8_t {
  none,
  losses_end_the_run,
  leader_is_to_propose,
  word_is_awaited,
  too_few_hear_each_other,
  nobody_has_a_version,
  values_would_be_needed_again,
  nobody_would_train,
  lost_ones_may_have_the_state
};

struct next_membership {
  obstacle why = obstacle::none;
  /// As the leader has planned it; `members` and `first` are empty then.
  bool as_planned = false;
  seat_list members{};  ///< of the next view, those of the newest one that stay
  /// The next view trains clocks from here on, with the values of this version.
  version_id first{};
  seat_list lacking{};  ///< of `members`: they are given these values by the others
  [[nodiscard]] bool is_decided() const { return why == obstacle::none; }
  auto operator<=>(const next_membership&) const = default;
};

/// Those who may go on together, before any rule is asked.
struct membership_candidate {
  seat_list hearing;  ///< each other, the largest such set
  /// The least whole version of those of them that train, or the greatest where none can go back; empty: none has any.
  std::optional<version_id> first;
  seat_list stay;        ///< of `hearing`, without those that could not be given values
  seat_list dead;        ///< proved by anybody
  bool drained = false;  ///< all that have answered stand at the clock of a plan
};

struct membership_rule {
  obstacle why;
  std::string_view says;
  bool (*forbids)(const membership_facts&, const membership_candidate&);
};
/// In the order in which they are asked.
[[nodiscard]] std::span<const membership_rule> membership_rules();

/// The membership of the view that follows. `without`: a rule that is not asked, for tests.
[[nodiscard]] next_membership next_members(const membership_facts& facts,
                                           obstacle without = obstacle::none);

}  // namespace poseidon
