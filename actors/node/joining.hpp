// actors/node/joining.hpp
//
// What a node does that joins a leader, until there is a graph to build: it dials, times its net if it is asked to, and
// enters the view that it is told. A part of `node`; `leading` is its counterpart.
#pragma once
#include "actors/node/node_core.hpp"
#include "messages/link.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

/// "waiting for 1 more worker: 2 of 3 are here", for the users of programs.
[[nodiscard]] std::string those_who_gather(const frames::gathering& f);

class joining {
 public:
  /// `later` asks the node to call dial() in a moment.
  joining(node_core& core, std::function<void()> later) : core_(core), later_(std::move(later)) {}

  /// Links the leader, now or, where it is just being replaced, in a moment. Blocks.  Errors   socket_error, handshake_error.
  void join();
  /// As join, where this node has to join (again).
  void dial();
  /// A node that waits to join has lost a link. True: it waits on, and joins again where the leader has left.
  /// Errors   as join.
  [[nodiscard]] bool lost(const link_lost& m);
  /// The leader knows that this node is ready, so the next view may be with it.
  [[nodiscard]] bool is_ready() const { return ready_; }
  /// Answers how fast this node trains the leader's net.  Errors   as compile_run.
  void on(const frames::time_net& f);
  void on(const frames::gathering& f) const;
  /// A run that trains: compiles it, links all its members, and says that this node is ready to join. Where a member cannot be
  /// reached, which may have left meanwhile, it joins again, a few times. Blocks.
  /// Errors   as join, compile_run.
  void prepare(const frames::view& f);
  /// Enters the view, and links the members that this node dials. Blocks.  Errors   as join.
  void enter(const frames::view& f);
  /// Members of that view that have ended since its newcomers linked them: they are lost, as if they had had a link.
  [[nodiscard]] std::vector<link_lost> take_unreached() { return std::exchange(lost_, {}); }

 private:
  /// Ends its links; with the last of them it dials, whoever answers of the members and of the addresses that its user gave.
  void join_again(const std::string& why, seat_id without);
  void take_run(const frames::view& f);
  /// Finds out what this node's program has of worker 0's bytes already.
  /// `later`: worker 0 trains already, and what it began with counts no more.
  /// Errors   std::invalid_argument: the two programs declare different parameters, or share different state.
  void compare_programs(bool later) const;
  /// Errors   std::invalid_argument: this node was given another --global-batch than the run has, or --own-data with "keep".
  void compare_batch_rules() const;
  void take_number_of_replicas(const frames::view& v);

  node_core& core_;
  std::function<void()> later_;
  bool pauses_ = false;        // before it joins again
  std::vector<host_port> at_;  // where it joins, until it has
  int put_off_ = 0;
  int unreached_ = 0;  // so often a member could not be reached
  bool ready_ = false;
  std::vector<link_lost> lost_;  // as this node entered the view
};

}  // namespace poseidon
