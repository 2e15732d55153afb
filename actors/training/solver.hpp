// actors/training/solver.hpp
//
// The iteration loop of one node: starts passes, test phases and snapshots at the clocks that the solver
// file asks for, collects the values of outputs, decides the last clock. It never waits for parameters
// (layers do, each for its own): clock c+1 starts when the passes of clock c have been issued. Its parts have no mailbox:
// clock_plan (which clock is next), test_phases, training_reports (what the user sees), run_goals.
//
//   begin -> [test phase due?] -> clock c: micro-batches 0..I-1, each on every replica -> [snapshot due:
//   wait until every layer is at version c+1, copy] -> clock c+1 -> ... -> last clock -> all layers fresh
//   -> final snapshot, final test -> training_done
// Where goals are set (keep_best, stop_at), a snapshot that is due at a test's clock is written after the test, and the leader
// begins no clock before all nodes have reported the test.
// With a barrier, which only comparisons have, every layer has to be at version c+1 before clock c+1.
//
// Where the view changes, all solvers pause before the same clock and wait until the graph around them has been rebuilt:
//   clock h -hold_clocks-> held before h+1 -pause_at C-> clocks up to C-1 -> draining -> paused -resume_training-> clock C
// A clock has begun when one of its passes has turned back. A pass on its way forward, which waits for parameters most of the time
// where lines are slow, is held back there instead: where no node has begun its clock, it is left and computed again after the change.
// Where a member is lost, at any moment:
//   -give_up_clocks-> given up, and says so -go_back R-> paused -resume_training-> clock R
//
// Accepts  begin_training    from node
//          pass_issued       from layer           data layers, once per replica, pass (test nets too)
//          passes_held       from layer           where passes turn back
//          outputs_ready     from layer
//          layer_fresh       from gradient_push   once per layer and version
//          nonfinite_found   from stream
//          control_passed   from node            worker_report of other workers (leader)
//          stop_soon, snapshot_soon   from node   leader only
//          finish_after      from node
//          snapshot_copied, snapshot_written      from checkpointer
//          connect_solver, hold_clocks, pause_at, resume_training, give_up_clocks, go_back   from node
//          shut_down         from node
// Sends    start_pass        to data_source
//          hold_passes       to layer             where passes turn back
//          send_frame        to network_link      worker_report, to the leader
//          write_snapshot, floor_reached   to checkpointer   leader
//          parameters_whole  to gradient_push, factor_broadcast   of side branches
//          stop_decided, training_done, training_failed, clocks_held, training_paused, clocks_given_up   to node
// State    clock and micro-batch in work; outputs gathered so far; versions of the layers.
// Fails    a loss that is not finite: training_failed naming the layer that made the first such value.
//          A snapshot that cannot be written does not end training; if the last one cannot, training_done
//          says so.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/training/clock_plan.hpp"
#include "actors/training/fresh_versions.hpp"
#include "actors/training/passes_on_hold.hpp"
#include "actors/training/run_goals.hpp"
#include "actors/training/snapshot_plan.hpp"
#include "actors/training/solver_setup.hpp"
#include "actors/training/test_phases.hpp"
#include "actors/training/training_reports.hpp"
#include "messages/link.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poseidon {

/// Ports and nets that exist only after all actors have been spawned; again for each view.
struct connect_solver {
  solver_part part;
  solver_net train;
  /// The layers of the train net where passes turn back, of all replicas.
  std::vector<port<hold_passes>> turns;
  std::vector<solver_net> tests;
  port<send_frame> to_leader;         ///< link to the leader; empty on the leader
  port<write_snapshot> checkpointer;  ///< leader only
  port<floor_reached> floor;          ///< the checkpointer, too
  std::vector<port<parameters_whole>> side_branches;
  port<stop_decided> node_stop;
  port<training_done> node_done;
  port<training_failed> node_failed;
  port<clocks_held> node_held;
  port<training_paused> node_paused;
  port<clocks_given_up> node_gave_up;
};

class solver : public actor<solver> {
 public:
  static constexpr const char* type_name = "solver";
  using accepts = messages<connect_solver, begin_training, pass_issued, passes_held, outputs_ready,
                           layer_fresh, nonfinite_found, control_passed, stop_soon, snapshot_soon,
                           finish_after, snapshot_copied, snapshot_written, hold_clocks, pause_at,
                           resume_training, give_up_clocks, go_back, shut_down>;
  using sends = messages<start_pass, hold_passes, send_frame, write_snapshot, floor_reached,
                         parameters_whole, stop_decided, training_done, training_failed,
                         clocks_held, training_paused, clocks_given_up>;

  solver(actor_context context, solver_setup setup);
  void on(const connect_solver& m);
  void on(const begin_training& m);
  void on(const pass_issued& m);
  void on(const passes_held& m);
  void on(const outputs_ready& m);
  void on(const layer_fresh& m);
  void on(const nonfinite_found& m);
  void on(const control_passed& m);
  void on(const stop_soon& m);
  void on(const snapshot_soon& m);
  void on(const finish_after& m);
  void on(const snapshot_copied& m);
  void on(const snapshot_written& m);
  void on(const hold_clocks& m);
  void on(const pause_at& m);
  void on(const resume_training& m);
  void on(const give_up_clocks&);
  void on(const go_back& m);
  void on(const shut_down& m);

 private:
  enum class phase {
    idle,
    waiting,  // at the barrier
    training,
    testing,
    judging,  // the leader waits for what the other nodes' tests have found
    copying,
    held,
    draining,
    paused,
    given_up,  // until go_back
    finishing,
    done
  };

  void next();
  void start_micro_batch();
  void start_test(std::size_t net);
  void start_test_passes(std::uint64_t replica);
  void end_test_if_finished();
  void judge();
  void snapshot_or_next();
  void copy_if_fresh();
  void pause_if_drained();
  void finish();
  [[nodiscard]] bool test_due() const;
  [[nodiscard]] bool last_snapshot_due() const;
  [[nodiscard]] bool leads() const { return setup_.part.self == setup_.part.leader; }
  [[nodiscard]] std::uint64_t first_sample(std::uint32_t micro_batch, std::uint32_t replica) const;
  void tell_turns(std::optional<clock_id> held_from);
  void answer_hold(bool has_begun);
  void let_passes_go();
  [[nodiscard]] bool clock_has_begun(bool pass_has_begun) const;
  void report(frames::worker_report r);
  void reported(worker_id from, const frames::worker_report& r);

  solver_setup setup_;
  until_end<connect_solver> nets_{this};
  phase phase_ = phase::idle;
  clock_plan plan_;
  // The epochs of the views in which the node has asked for it.
  std::uint64_t holds_in_ = 0, pauses_in_ = 0;
  passes_on_hold passes_;
  std::uint32_t micro_batch_ = 0;
  std::size_t issued_ = 0;  // data layers and replicas that have issued the pass in work
  std::uint64_t images_ = 0;

  fresh_versions fresh_;
  training_reports reports_;
  run_goals goals_;   // leader only
  bool led_ = false;  // this node has led before
  test_phases tests_;
  snapshot_plan snapshots_;
  bool was_lost_ = false;    // a member, since the view began
  bool unjudged_ = false;    // a test is complete here, and the goals have not decided
  std::string stop_wanted_;  // while paused
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_solver)
