// actors/membership/view_plan.hpp
//
// What the node that leads knows of who takes part, and what it does about it: it counts nodes in until there are as many as asked for,
// says go when all are ready, plans the next view while all train, and sees when all are done. A value without a mailbox, a clock or a
// link: its owner tells it what happens, and does what take_action() says, one after the other. One per run, on the leader; where
// another node begins to lead, it has one that begins with the view that forms.
//
//   gathering --N-1 joined--> forming --all ready--> beginning --began--> standing --all done--> the end
//
// While all train it changes the view: other routes, nodes that join, members that leave. One change at a time; what is wanted
// meanwhile is part of the next one. Whoever has begun a clock finishes it in the old view, so the clock of the change is the
// latest that no member has begun:
//
//   standing --something is wanted--> holding --all hold--> draining --all drained--> forming
//   beginning --other routes, or so many members, are wanted from a clock on--> draining
//   forming, beginning --a newcomer of that view is gone--> [refilling --another one is ready-->] forming
//
// Who joins and leaves is settled when all have drained. A newcomer that dies before then is no part of the next view; one that
// dies later, but before that view begins, is left out of another one, which replaces it. Either costs nobody anything. At least
// one member stays: if all want to leave as others join, they leave one view later. Members that want to leave are collected for a
// moment: all of them together are the end of the run. Where a schedule says how many there are (--views), a view waits for
// newcomers that are missing, and those with the highest seats leave; nothing else changes it.
//
// A lost member is not its matter, but for one that comes with a view that has not begun. With the first view all come but the leader.
#pragma once
#include "messages/frames.hpp"
#include "messages/ids.hpp"
#include "models/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace poseidon {

/// All members are to train with these routes, as soon as possible or from a clock on.
struct change_wanted {
  std::vector<std::uint8_t> routes;  ///< as frames::view has them
  std::optional<clock_id> clock;
  std::string why;  ///< for people
  /// So many members from then on; 0: as nodes join and leave.
  std::size_t members = 0;
};

/// What the leader is to do.
namespace plan {
/// All nodes have joined; by worker id. This is the first view.
struct agree_on_first_view {
  std::vector<frames::member> members;
};
/// All members are ready: the view begins. view_plan::began() is to follow.
struct begin_view {};
/// Every member is to say which clock it would begin next.
struct hold_all {};
/// Every member is to train up to this clock.
struct drain_all {
  clock_id clock{};
};
/// All other members stand at this clock, and wait for this node: before a change of the view, or at the end.
struct others_wait {
  clock_id clock{};
};
/// All members have drained: they are to agree on this view. Said again, with the next epoch, where a newcomer has died before that
/// view could begin.
struct propose_view {
  std::uint64_t epoch = 0;
  std::vector<frames::member> members;              ///< by worker
  std::optional<std::vector<std::uint8_t>> routes;  ///< empty: as they are
  std::string why;                                  ///< of the routes, for people
};
/// leavers_collected(epoch) is to follow in a moment: the members that leave have time to say so.
struct collect_leavers {
  std::uint64_t epoch = 0;
};
/// All members want to leave, which is the end of the run.
struct end_run {};
/// All members have trained their last clock.
struct all_are_done {};

using action = std::variant<agree_on_first_view, begin_view, hold_all, drain_all, others_wait,
                            propose_view, collect_leavers, end_run, all_are_done>;
}  // namespace plan

struct view_plan_setup {
  std::size_t workers = 1;  ///< so many gather before training begins
  /// This node; or, where it begins to lead a run that trains, the members of the next view.
  std::vector<frames::member> members;
  bool forming = false;              ///< these are the members of a view that begins
  std::set<seat_id> parting = {};    ///< members of the view before that leave with it
  bool by_schedule = false;          ///< members change only as wants() says
  std::uint64_t epoch = 1;           ///< of the first view here
  std::set<seat_id> newcomers = {};  ///< of `members`: they come with a view that begins
};

class view_plan {
 public:
  explicit view_plan(view_plan_setup setup);

  // What has happened. Each may add actions.
  /// While nodes gather: one has proved the token and has got this seat.
  void joined(const frames::member& joiner);
  /// This member's links and actors exist for the view of `epoch`.
  void ready(seat_id seat, std::uint64_t epoch);
  /// All members have been told to train, and before that the clock of a change that is planned for one.
  void began();
  /// Another view is wanted. One with a clock is told between begin_view and began(), and its members are told the clock by the owner.
  void wants(const change_wanted& change);
  /// The run is to end, so nobody waits any longer for nodes that a schedule wants.
  void schedule_ends();
  /// A node has built what it can build, and is to be in the next view.
  void newcomer_ready(const frames::member& newcomer);
  /// A node is gone that is no member, or one of a view that has not begun.
  void newcomer_gone(seat_id seat);
  /// The next view is to be without this member.
  void leaves(seat_id seat);
  void leavers_collected(std::uint64_t epoch);
  /// A member would begin this clock next, and waits.
  void holds(seat_id seat, clock_id clock);
  /// A member has trained up to this clock.
  void drained(seat_id seat, clock_id clock);
  /// A member has trained its last clock.
  void done(seat_id seat, version_id version);

  /// The next thing to do; empty: nothing.
  [[nodiscard]] std::optional<plan::action> take_action();

 private:
  enum class stage { gathering, forming, refilling, beginning, standing, holding, draining };

  [[nodiscard]] bool all_in(const std::set<seat_id>& seats) const;
  [[nodiscard]] bool is_member(seat_id seat) const;
  [[nodiscard]] bool all_but_leader_in(const std::set<seat_id>& seats) const;
  void change_if_wanted();
  void drain_before(clock_id clock);
  void end_view_if_drained();
  void end_view();
  void propose_next();
  void take_newcomers(std::size_t members);
  [[nodiscard]] std::vector<frames::member> who_stays() const;
  [[nodiscard]] std::vector<frames::member> who_stays_of(std::size_t wanted) const;

  std::deque<plan::action> to_do_;
  std::size_t workers_;
  bool by_schedule_;
  stage stage_;
  std::uint64_t epoch_;  // of the view that holds, or forms
  std::vector<frames::member> members_;
  std::set<seat_id> ready_, done_;
  // They are ready, too, before the view begins: then they can give their solver state away.
  std::set<seat_id> parting_;
  // What the next view is to be.
  std::optional<change_wanted> wanted_;
  std::map<seat_id, frames::member> newcomers_;
  std::set<seat_id> leavers_;
  std::optional<std::uint64_t> collecting_since_;  // the epoch
  // What has been told of the view that forms, for one that replaces it.
  plan::propose_view told_;
  std::size_t members_wanted_ = 0;  // by a schedule
  std::set<seat_id> entering_;      // newcomers of it
  // The change under way.
  std::map<seat_id, clock_id> held_;
  std::set<seat_id> drained_;
  clock_id clock_{};
};

}  // namespace poseidon
