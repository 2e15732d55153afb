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

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

class changing {
 public:
  changing(node_core& core, assembly& graph, value_sender& values)
      : core_(core), assembly_(graph), values_(values) {}

  /// The solver begins no further clock before it knows which one is the last of this view.
  void hold();
  void take(clock_id clock);
  /// The clock that was agreed on before this node could begin to drain.
  void take_early();
  /// The solver has paused. Returns  the clock up to which this node has drained; empty: it was not asked to.
  [[nodiscard]] std::optional<clock_id> on(const training_paused& m);
  /// A member is lost: the solver and all that computes end what they do; solver state stays where it is.
  void freeze();
  /// The solver has given up its clocks. True: this node has frozen.
  [[nodiscard]] bool gave_up();
  /// Whether this node can go to that view: it has the parameters of its first version. Others may say anything.
  [[nodiscard]] bool can_follow(const frames::next_view& next) const;
  /// Every node has drained or frozen, and this is the next view: this node's actors give their solver state away. Or this view replaces one
  /// that was to be the next: the graph for that one ends. True: there is none, so this node rebuilds at once.
  [[nodiscard]] bool leave(const frames::next_view& next);
  /// The view that comes next begins without the solver state of these layers, or a part of it. Tells the user.
  void begin_with_zeros(const std::vector<std::string>& layers, clock_id clock);
  void on(const history_released& m);
  /// An actor has ended. True: it was the last one that had to end.
  [[nodiscard]] bool left(const caf::actor_addr& actor);
  /// Enters the next view and spawns its graph; or waits, where this node is no member of it, until the others are ready.
  /// Errors   as local_run::rebuild, member::dial_members.
  void rebuild();
  /// This node begins to train.
  void begin();
  /// All members have rebuilt: what a peer sends now finds its place.
  void resume();
  /// As resume, for a node that leaves.
  void part();
  [[nodiscard]] bool members_changed() const { return members_changed_; }
  /// How long the last change stopped this node's training.
  [[nodiscard]] std::chrono::milliseconds stopped() const { return stopped_; }

 private:
  /// The actors of the graph that stands.
  void end_graph();
  [[nodiscard]] std::vector<port<shut_down>> passing(bool with_state) const;
  [[nodiscard]] bool has_version(clock_id clock) const;
  void go_back();
  [[nodiscard]] bool begin_anew();
  /// Tells the user of the view that training begins with, or goes on with. `changed`: as in progress::view.
  void show(const std::string& changed = {}, const std::string& why = {}) const;

  node_core& core_;
  assembly& assembly_;
  value_sender& values_;
  agreed_view from_;     // the view that was drained
  std::string changed_;  // by the last change, for people
  std::string zeroed_;   // what begins with zeros in the next view, for people
  bool routes_changed_ = false;
  bool members_changed_ = false;
  bool goes_back_ = false;  // to an earlier version than the trainer has begun with
  bool frozen_ = false;     // what computes has ended, and nothing else of the graph
  bool was_lost_ = false;   // a link, or a member: this node has frozen for this change
  std::chrono::milliseconds stopped_{0};
};

}  // namespace poseidon
