// actors/node/changing.hpp
//
// A node's way from one view to the next, while the run goes on: what it does at each step of view_change. A part of
// `node`.
//
// All nodes change before the same clock C (view_change.hpp). Each trains what comes before C with the old routes and waits
// until all of it has arrived. The graph is ended and built again for C, as at the start, but with the values that this node
// has; solver and checkpointer last. Solver state goes from the actors that kept it to those that keep it now, ahead of the
// first gradients or factors on the same link.
#pragma once
#include "actors/node/assembly.hpp"
#include "actors/node/node_core.hpp"
#include "actors/node/value_sender.hpp"
#include "messages/membership.hpp"

#include <chrono>
#include <optional>

namespace poseidon {

class changing {
 public:
  changing(node_core& core, assembly& graph, value_sender& values)
      : core_(core), assembly_(graph), values_(values) {}

  /// The solver begins no further clock before it knows which one is the last of this view.
  void hold();
  void take(const frames::change_routes& m);
  /// What was agreed before this node could begin with it.
  void take_next();
  /// The solver has paused. Returns  what the leader is to hear.
  [[nodiscard]] std::optional<member_paused> on(const training_paused& m);
  /// Every node has drained: this one's actors give their solver state away.
  void leave();
  void on(const history_released& m);
  /// An actor has ended. True: it was the last one of the old graph.
  [[nodiscard]] bool left(const caf::actor_addr& actor);
  /// Spawns the graph of the next view.  Errors   as local_run::rebuild.
  void rebuild();
  /// All nodes have rebuilt: what a peer sends now finds its place. Returns  how long this node's training was stopped.
  [[nodiscard]] std::chrono::milliseconds resume();

 private:
  node_core& core_;
  assembly& assembly_;
  value_sender& values_;
};

}  // namespace poseidon
