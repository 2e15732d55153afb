// actors/node/changing.hpp
//
// A node's way from one view to the next, while the run goes on: what it does as view_change asks. A part of `node`.
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
  void take(const frames::drain& f);
  /// The clock that was agreed on before this node could begin to drain.
  void take_early();
  /// The solver has paused. Returns  the clock up to which this node has drained; empty: it was not asked to.
  [[nodiscard]] std::optional<clock_id> on(const training_paused& m);
  /// A member is lost: the solver and all that computes end what they do; solver state stays where it is.
  void freeze(const view_facts& f);
  /// As view_change::left has it: of the solver, which gives its clocks up and does not end, or of an actor.
  [[nodiscard]] view_change::task trainer() const;
  /// Every node has drained or frozen, and this is the next view; or it replaces one that was to be the next.
  void leave(const frames::next_view& next, const view_facts& f);
  /// This node's actors give their solver state away.
  void release();
  /// The actors of the graph that stands end.
  void end_graph(view_action::end_graph::cause why);
  /// The view that comes next begins without the solver state of these layers, or a part of it. Tells the user.
  void begin_with_zeros(const std::vector<std::string>& layers, clock_id clock);
  void on(const history_released& m);
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
  [[nodiscard]] std::vector<port<shut_down>> passing(bool with_state) const;
  void go_back();
  /// Tells the user of the view that training begins with, or goes on with. `changed`: as in progress::view.
  void show(const std::string& changed = {}, const std::string& why = {}) const;

  node_core& core_;
  assembly& assembly_;
  value_sender& values_;
  agreed_view from_;            // the view that was drained
  std::string changed_;         // by the last change, for people
  std::string zeroed_;          // what begins with zeros in the next view, for people
  bool for_newcomers_ = false;  // it drains, or is about to, and others join then
  bool routes_changed_ = false;
  bool members_changed_ = false;
  bool goes_back_ = false;  // to an earlier version than the trainer has begun with
  bool frozen_ = false;     // what computes has ended, and nothing else of the graph
  bool was_lost_ = false;   // a link, or a member: this node has frozen for this change
  std::chrono::milliseconds stopped_{0};
};

}  // namespace poseidon
