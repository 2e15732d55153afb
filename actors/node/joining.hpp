// actors/node/joining.hpp
//
// What a node does that joins a leader, until there is a graph to build: it dials, times its net if it is asked to, and
// enters the view that it is told. A part of `node`; `leading` is its counterpart.
#pragma once
#include "actors/node/node_core.hpp"

namespace poseidon {

class joining {
 public:
  explicit joining(node_core& core) : core_(core) {}

  /// Links the leader. Blocks.  Errors   socket_error, handshake_error.
  void join();
  /// Answers how fast this node trains the leader's net.  Errors   as compile_run.
  void on(const frames::time_net& f);
  /// Enters the view, and links the members that this node dials. Blocks.  Errors   as join; bad_frame.
  void on(const frames::view& f, worker_id from);

 private:
  /// Errors   std::invalid_argument: this node's program and worker 0's declare different parameters.
  void compare_programs() const;
  void take_number_of_replicas(const frames::view& v);

  node_core& core_;
};

}  // namespace poseidon
