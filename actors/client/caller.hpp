// actors/client/caller.hpp
//
// Stands where layers, streams and the solver stand in a run of ours: for the program around the node, which computes the
// gradients and makes the updates. The program lends a gradient and tells the caller; fresh values come back to a fresh_board, on
// which the program's threads wait. One per node whose run is declared by programs.
//
// Where the view changes as planned, all programs pause before the same clock, as solvers do (actors/training/solver.hpp):
//   clocks begin -hold_clocks-> held -pause_at C-> clocks up to C-1 -> draining -version C of all is here-> paused -resume_training->
// Where others join with clock C, the program is asked for what they need when it begins that clock, and has not paused before it has given it.
// Where a worker is lost, the program goes on with what it does, and what it lends stays here until the next view stands. What it has
// lent of that view's first clock is sent then, once more if the others had it in the view before: they have forgotten it.
//   give_up_clocks -> frozen -resume_training-> gradients of the view's first clock are sent
//
// A member whose program leaves while the others may train on stays until one of these trains a clock that it does not train. That one's
// caller says so to its node, for which it is lost from then on.
//
// A program that asks for the state of its optimizer stands until it has it. No graph is rebuilt meanwhile: a caller that gathers state
// answers hold_clocks afterwards, and one that has answered gathers when the nodes pause later than at the program's version, or
// have resumed. Before training has begun other nodes may not have built theirs.
//
// Accepts  connect_caller, begin_training, hold_clocks, pause_at, give_up_clocks, go_back, resume_training   from node
//          gradients_lent, state_wanted, state_given, clock_reported, loads_measured, program_done   from the program's threads
//          layer_fresh       from gradient_push, factor_broadcast, lowrank_exchange   once per parameter and version
//          shared_landed     from network_link    what the programs share, before the first clock
//          snapshot_copied   from checkpointer    the program has the state
//          control_passed   from node            worker_report and factor_offer of other workers (leader), worker_left
//          shut_down         from node
// Sends    backward_done     to gradient_push, factor_broadcast, lowrank_exchange
//          send_frame        to network_link      worker_report, factor_offer, to the leader
//          write_snapshot    to checkpointer      for the program: the optimizer's state, where shards make its steps
//          training_done, goes_on_without, clocks_held, training_paused, clocks_given_up   to node
//          factors_offered   to node              the leader's, once
// State    how far the program has come, and what it has lent; the reports of a clock; the leader's: what the workers offer.
// Fails    never: what a program does wrong its own call refuses (apps/library).
#pragma once
#include "actors/client/factor_offers.hpp"
#include "actors/client/program.hpp"
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/progress.hpp"
#include "actors/core/trace.hpp"
#include "messages/client.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace poseidon {

struct caller_setup {
  std::shared_ptr<program> from;
  std::shared_ptr<overlap_meter> overlap;
  std::shared_ptr<progress> display;  ///< the leader's shows the means of reports; may be null
  /// What this node's links have sent and received; may be empty.
  std::function<traffic()> carried;
  /// Where it records what the program does; null: nowhere.
  trace_lane* trace = nullptr;
};

/// A view, and ports that exist only after all its actors have been spawned.
struct connect_caller {
  program_view view;
  bool lacks_values = false;  ///< others give this worker the view's first version
  bool comes = false;         ///< and so they do because it has joined with this view
  worker_id leader{};
  by_id<parameter_id, port<backward_done>> pushes;
  port<write_snapshot> checkpointer;
  port<send_frame> to_leader;  ///< link to the leader; empty on the leader
  port<training_done> node;
  port<goes_on_without> node_goes_on;
  port<clocks_held> node_held;
  port<training_paused> node_paused;
  port<clocks_given_up> node_gave_up;
  port<factors_offered> node_offered;
};

class caller : public actor<caller> {
 public:
  static constexpr const char* type_name = "caller";
  using accepts = messages<connect_caller, begin_training, gradients_lent, state_wanted,
                           state_given, clock_reported, loads_measured, program_done, layer_fresh,
                           shared_landed, snapshot_copied, control_passed, hold_clocks, pause_at,
                           give_up_clocks, go_back, resume_training, shut_down>;
  using sends = messages<backward_done, send_frame, write_snapshot, training_done, goes_on_without,
                         clocks_held, training_paused, clocks_given_up, factors_offered>;

  caller(actor_context context, caller_setup setup);
  void on(const connect_caller& m);
  void on(const begin_training& m);
  void on(const gradients_lent& m);
  void on(const state_wanted& m);
  void on(const state_given& m);
  void on(const clock_reported& m);
  void on(const loads_measured& m);
  void on(const program_done& m);
  void on(const layer_fresh& m);
  void on(const shared_landed& m);
  void on(const snapshot_copied& m);
  void on(const control_passed& m);
  void on(const hold_clocks& m);
  void on(const pause_at& m);
  void on(const give_up_clocks&);
  void on(const go_back& m);
  void on(const resume_training& m);
  void on(const shut_down& m);
  void started();
  void ended();

 private:
  [[nodiscard]] bool leads() const { return neighbours_->view.self == neighbours_->leader; }
  void begin_view();
  void send_lent(parameter_id p, std::uint64_t clock);
  void send_lent_again();
  void take(worker_id from, const frames::worker_report& r);
  void take(worker_id from, const frames::factor_offer& o);
  void pause_if_drained();
  void note_push(std::uint64_t clock);
  void bring_to_its_place(parameter_id p, std::uint64_t version);
  void note_update(const layer_fresh& m);
  void gather_state();
  void begins(std::uint64_t clock);
  void go_on_without_leavers();

  caller_setup setup_;
  until_end<connect_caller> neighbours_{this};
  std::uint64_t samples_ = 0;
  by_id<layer_id, std::uint64_t> fresh_;     // version that is here
  by_id<parameter_id, std::uint64_t> lent_;  // clocks of which a gradient has been lent
  by_id<parameter_id, bool> given_;          // the view's first version is here, in this view
  bool frozen_ = false;                      // a worker is lost: what is lent waits
  bool of_former_view_ = false;     // and what arrives is still of the view that has lost it
  std::vector<layer_fresh> early_;  // what has arrived of a view that has not begun here
  /// What the program does, as its pushes show it.
  struct {
    std::int64_t since_ns = 0;   // the last push of the clock before
    std::int64_t first_ns = 0;   // the first of this one
    std::int64_t waited_ns = 0;  // by then
    std::size_t pushes = 0;      // of this one
  } pace_;
  std::optional<std::uint64_t> pauses_at_;  // draining, or paused
  std::uint64_t pauses_in_ = 0;             // the view's epoch
  bool for_newcomers_ = false;              // who needs the program's state of that clock
  bool paused_ = false;
  bool began_ = false;
  bool held_ = false;  // hold_clocks is answered, and training has not resumed
  struct {
    std::optional<version_id> wanted;  // while it is not gathered
    bool gathering = false;
    std::optional<hold_clocks> hold_waits;
  } state_;
  std::optional<program_done> done_;          // the program has trained its last clock
  std::uint64_t begun_ = 0;                   // clocks that the program has begun
  std::map<seat_id, std::uint64_t> leavers_;  // with which version, in this view
  std::vector<parameter_load> loads_;         // the leader's
  factor_offers offers_;                      // the leader's
  /// The leader's: what has been reported of a clock, by clock.
  struct reported {
    double loss = 0;
    std::size_t workers = 0;
  };
  std::map<std::uint64_t, reported> reports_;
  by_id<worker_id, frames::worker_report> newest_;  // the leader's
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_caller)
