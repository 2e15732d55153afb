// actors/cluster/coordinator.hpp
//
// Agrees on who takes part: counts nodes in until there are as many as asked for, gives them their worker
// ids in joining order, says go when all are ready, and when all are done. One per cluster, on worker 0.
//
//   gathering --N-1 joined--> forming --all ready--> training --all done--> ended
//
// While all train it lets them change their routes at one clock, as often as it is asked to; a wish while a change
// is under way counts for nothing. Whoever has begun a clock finishes it with the old routes, so the clock is the
// latest that anybody has not begun:
//
//   training --change_wanted--> holding --all hold--> draining --all drained--> forming
//   training --change_wanted, clock given--> draining
//
// Accepts  member_joined    from node   a handshake succeeded
//          member_is_ready  from node   worker 0's own, and what member_ready frames say
//          member_is_done   from node   the same for worker_done
//          member_paused    from node   the same for worker_paused
//          change_wanted    from node
//          shut_down        from node
// Sends    view_agreed, everyone_ready, everyone_done   to node
//          hold_everyone, change_agreed, everyone_drained   to node
// State    who has joined, who is ready and done; the change under way: who holds, who has drained.
// Fails    never: a lost member is node's matter (in this version it ends the run).
#pragma once
#include "actors/core/actor.hpp"
#include "messages/membership.hpp"
#include "messages/training.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace poseidon {

struct coordinator_setup {
  std::size_t workers = 1;
  std::string own_address;
};

struct connect_coordinator {
  port<view_agreed> view;
  port<everyone_ready> ready;
  port<everyone_done> done;
  port<hold_everyone> hold;
  port<change_agreed> agreed;
  port<everyone_drained> drained;
};

class coordinator : public actor<coordinator> {
 public:
  static constexpr const char* type_name = "coordinator";
  using accepts = messages<connect_coordinator, member_joined, member_is_ready, member_is_done,
                           member_paused, change_wanted, shut_down>;
  using sends = messages<view_agreed, everyone_ready, everyone_done, hold_everyone, change_agreed,
                         everyone_drained>;

  coordinator(actor_context context, coordinator_setup setup);
  void on(const connect_coordinator& m);
  void on(const member_joined& m);
  void on(const member_is_ready& m);
  void on(const member_is_done& m);
  void on(const member_paused& m);
  void on(const change_wanted& m);
  void on(const shut_down& m);

 private:
  coordinator_setup setup_;
  until_end<connect_coordinator> node_{this};
  std::vector<std::string> members_;
  std::set<worker_id> ready_, done_;
  std::optional<change_wanted> change_;  // under way
  std::map<worker_id, clock_id> held_;
  std::set<worker_id> drained_;
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_coordinator)
