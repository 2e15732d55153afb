// actors/cluster/coordinator.hpp
//
// Agrees on who takes part: counts nodes in until there are as many as asked for, says go when all are ready, and when
// all are done. One per cluster, on the leader; where another node begins to lead, it begins with the view that forms.
//
//   gathering --N-1 joined--> forming --all ready--> beginning --everyone_began--> standing --all done--> ended
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
// Accepts  member_joined    from node   a handshake succeeded
//          member_is_ready  from node   the leader's own, and what member_ready frames say
//          member_is_done   from node   the same for worker_done
//          member_paused    from node   the same for worker_paused
//          change_wanted, schedule_ends, newcomer_ready, newcomer_gone, member_leaves   from node
//          everyone_began   from node   all have been told to train
//          leavers_collected from itself
//          shut_down        from node
// Sends    view_agreed, everyone_ready, everyone_done   to node
//          hold_everyone, drain_agreed, others_wait, everyone_drained, everyone_leaves   to node
// State    the members; who is ready and done; what the next view is to be; the change under way: who holds, who has drained.
// Fails    never: a lost member is node's matter, but for one that comes with a view that has not begun. With the first view all come but
//          the leader.
#pragma once
#include "actors/core/actor.hpp"
#include "messages/membership.hpp"
#include "messages/training.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poseidon {

struct coordinator_setup {
  std::size_t workers = 1;  ///< so many gather before training begins
  /// This node; or, where it begins to lead a run that trains, the members of the next view.
  std::vector<frames::member> members;
  bool forming = false;              ///< these are the members of a view that begins
  std::set<seat_id> parting = {};    ///< members of the view before that leave with it
  bool by_schedule = false;          ///< members change only as change_wanted says
  std::uint64_t epoch = 1;           ///< of the first view here
  std::set<seat_id> newcomers = {};  ///< of `members`: they come with a view that begins
  /// Members that want to leave are collected for so long.
  std::chrono::milliseconds leaving_window{200};
};

struct connect_coordinator {
  port<view_agreed> view;
  port<everyone_ready> ready;
  port<everyone_done> done;
  port<hold_everyone> hold;
  port<drain_agreed> agreed;
  port<everyone_drained> drained;
  port<everyone_leaves> leaves;
  port<others_wait> others;
};

/// To itself: the members that leave have had time to say so.
struct leavers_collected {};

class coordinator : public actor<coordinator> {
 public:
  static constexpr const char* type_name = "coordinator";
  using accepts =
      messages<connect_coordinator, member_joined, member_is_ready, everyone_began, member_is_done,
               member_paused, change_wanted, schedule_ends, newcomer_ready, newcomer_gone,
               member_leaves, leavers_collected, shut_down>;
  using sends = messages<view_agreed, everyone_ready, everyone_done, hold_everyone, drain_agreed,
                         everyone_drained, everyone_leaves, others_wait>;

  coordinator(actor_context context, coordinator_setup setup);
  void on(const connect_coordinator& m);
  void on(const member_joined& m);
  void on(const member_is_ready& m);
  void on(const everyone_began&);
  void on(const member_is_done& m);
  void on(const member_paused& m);
  void on(const change_wanted& m);
  void on(const schedule_ends&);
  void on(const newcomer_ready& m);
  void on(const newcomer_gone& m);
  void on(const member_leaves& m);
  void on(const leavers_collected&);
  void on(const shut_down& m);

 private:
  enum class phase { gathering, forming, refilling, beginning, standing, holding, draining };

  [[nodiscard]] bool all_in(const std::set<seat_id>& seats) const;
  [[nodiscard]] bool is_member(seat_id seat) const;
  [[nodiscard]] bool all_but_leader_in(const std::set<seat_id>& seats) const;
  void change_if_wanted();
  void held(const member_paused& m);
  void drain_before(clock_id clock);
  void end_view_if_drained();
  void end_view();
  void tell_next_view();
  void take_newcomers(std::size_t members);
  [[nodiscard]] std::vector<frames::member> who_stays() const;
  [[nodiscard]] std::vector<frames::member> who_stays_of(std::size_t wanted) const;

  coordinator_setup setup_;
  until_end<connect_coordinator> node_{this};
  phase phase_ = phase::gathering;
  std::uint64_t epoch_ = 1;  // of the view that holds, or forms
  std::vector<frames::member> members_;
  std::set<seat_id> ready_, done_;
  // They are ready, too, before the view begins: then they can give their solver state away.
  std::set<seat_id> parting_;
  // What the next view is to be.
  std::optional<change_wanted> routes_;
  std::map<seat_id, frames::member> newcomers_;
  std::set<seat_id> leavers_;
  bool collecting_ = false;  // leavers
  // What has been told of the view that forms, for one that replaces it.
  everyone_drained told_;
  std::size_t members_wanted_ = 0;  // by a schedule
  std::set<seat_id> entering_;      // newcomers of it
  // The change under way.
  std::map<seat_id, clock_id> held_;
  std::set<seat_id> drained_;
  clock_id clock_{};
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_coordinator)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::leavers_collected)
