// actors/training/solver.hpp
//
// The iteration loop of one node: starts passes, test phases and snapshots at the clocks that the solver
// file asks for, collects the values of outputs, decides the last clock. It never waits for parameters
// (layers do, each for its own): clock c+1 starts when the passes of clock c have been issued.
//
//   begin -> [test phase due?] -> clock c: micro-batches 0..I-1, each on every replica -> [snapshot due:
//   wait until every layer is at version c+1, copy] -> clock c+1 -> ... -> last clock -> all layers fresh
//   -> final snapshot, final test -> training_done
// With a barrier, which only comparisons have, every layer has to be at version c+1 before clock c+1.
//
// Where routes change, all solvers pause before the same clock and wait until the graph around them has been rebuilt:
//   clock h -hold_clocks-> held before h+1 -pause_at C-> clocks up to C-1 -> draining -> paused -resume_training-> clock C
//
// Accepts  begin_training    from node
//          pass_issued       from layer           data layers, once per replica, pass (test nets too)
//          outputs_ready     from layer
//          layer_fresh       from gradient_push   once per layer and version
//          nonfinite_found   from stream
//          control_arrived   from node            worker_report of other workers (worker 0)
//          stop_soon         from node            worker 0 only
//          finish_after      from node
//          snapshot_copied, snapshot_written      from checkpointer
//          connect_solver, hold_clocks, pause_at, resume_training   from node
//          shut_down         from node
// Sends    start_pass        to data_source
//          send_frame        to network_link      worker_report, to worker 0
//          write_snapshot    to checkpointer      worker 0
//          stop_decided, training_done, training_failed, clocks_held, training_paused   to node
// State    clock and micro-batch in work; outputs gathered so far; versions of the layers.
// Fails    a loss that is not finite: training_failed naming the layer that made the first such value.
//          A snapshot that cannot be written does not end training; if the last one cannot, training_done
//          says so.
#pragma once
#include "actors/core/actor.hpp"
#include "actors/core/overlap_meter.hpp"
#include "actors/core/progress.hpp"
#include "actors/training/output_reports.hpp"
#include "actors/training/test_progress.hpp"
#include "messages/link.hpp"
#include "messages/training.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe.pb.h"

namespace poseidon {

/// One net of the run as the solver sees it: where passes enter and what comes out.
struct solver_net {
  std::vector<std::vector<port<start_pass>>> sources;  ///< [replica][data layer]
  std::vector<output_value> outputs;
  test_share share;  ///< test nets
};

struct solver_setup {
  worker_id self{};
  std::size_t workers = 1;
  std::uint32_t replicas = 1;
  std::uint32_t micro_batches = 1;
  std::size_t layers_that_learn = 0;
  bool barrier = false;
  std::uint64_t images_per_clock = 0;  ///< samples per clock on this node
  std::uint64_t images_of_all = 0;     ///< samples per clock, summed over all nodes
  /// With uneven shares: the weight of each replica's outputs in the mean of this node. Empty: the passes of all
  /// replicas count alike.
  std::vector<double> weights;
  std::uint64_t test_phases = 0;  ///< completed by the run that this one resumes
  ::caffe::SolverParameter spec;
  /// First sample of a training pass: (clocks since the run's first, micro-batch, replica).
  std::function<std::uint64_t(std::uint64_t, std::uint32_t, std::uint32_t)> first_sample;
  /// Is told steps and tests, on worker 0 values and snapshots, too; may be empty.
  std::shared_ptr<progress> display;
  std::function<traffic()> carried;  ///< by this node's links; may be empty
  std::shared_ptr<const overlap_meter> overlap;
};

/// Ports and nets that exist only after all actors have been spawned.
struct connect_solver {
  solver_net train;
  std::vector<solver_net> tests;
  port<send_frame> to_first;          ///< link to worker 0; empty on worker 0
  port<write_snapshot> checkpointer;  ///< worker 0 only
  port<stop_decided> node_stop;
  port<training_done> node_done;
  port<training_failed> node_failed;
  port<clocks_held> node_held;
  port<training_paused> node_paused;
};

class solver : public actor<solver> {
 public:
  static constexpr const char* type_name = "solver";
  using accepts =
      messages<connect_solver, begin_training, pass_issued, outputs_ready, layer_fresh,
               nonfinite_found, control_arrived, stop_soon, finish_after, snapshot_copied,
               snapshot_written, hold_clocks, pause_at, resume_training, shut_down>;
  using sends = messages<start_pass, send_frame, write_snapshot, stop_decided, training_done,
                         training_failed, clocks_held, training_paused>;

  solver(actor_context context, solver_setup setup);
  void on(const connect_solver& m);
  void on(const begin_training& m);
  void on(const pass_issued& m);
  void on(const outputs_ready& m);
  void on(const layer_fresh& m);
  void on(const nonfinite_found& m);
  void on(const control_arrived& m);
  void on(const stop_soon& m);
  void on(const finish_after& m);
  void on(const snapshot_copied& m);
  void on(const snapshot_written& m);
  void on(const hold_clocks& m);
  void on(const pause_at& m);
  void on(const resume_training& m);
  void on(const shut_down& m);

 private:
  enum class phase {
    idle,
    waiting,  // at the barrier
    training,
    testing,
    copying,
    held,
    draining,
    paused,
    finishing,
    done
  };

  void next();
  void start_micro_batch();
  void start_test(std::size_t net);
  void start_test_passes(std::uint64_t replica);
  void end_test_if_finished();
  void copy_if_fresh();
  void pause_if_drained();
  void finish();
  [[nodiscard]] bool test_due() const;
  [[nodiscard]] bool snapshot_due() const;
  [[nodiscard]] bool fresh(std::uint64_t version) const;
  void show_step(std::uint64_t done) const;
  void show_test();
  void clock_computed(std::uint64_t clock, std::vector<double> sums);
  void report(frames::worker_report r);
  void take(worker_id from, const frames::worker_report& r);

  solver_setup setup_;
  until_end<connect_solver> nets_{this};
  phase phase_ = phase::idle;
  std::uint64_t first_clock_ = 0;
  std::uint64_t clock_ = 0;        // in work, or to be started next
  std::uint64_t end_version_ = 0;  // clocks below this one are trained
  bool stopped_early_ = false;
  std::uint32_t micro_batch_ = 0;
  std::size_t issued_ = 0;  // data layers and replicas that have issued the pass in work
  std::uint64_t images_ = 0;

  std::map<std::uint64_t, std::size_t> fresh_layers_;  // by version: layers that have reached it
  std::uint64_t fresh_version_ = 0;                    // every layer has reached it

  std::optional<std::uint64_t> held_clock_;   // begins after pause_at
  std::optional<std::uint64_t> pause_clock_;  // begins after resume_training
  std::string stop_wanted_;                   // while paused
  std::uint64_t least_end_ = 0;  // stop_soon ends training at this version or a later one

  std::uint64_t computed_ = 0;  // outputs of all clocks below have arrived
  output_sums outputs_;
  smoothed_loss loss_;
  report_board board_;  // worker 0

  std::size_t test_net_ = 0;
  test_progress test_;
  std::shared_ptr<std::atomic<std::uint64_t>> test_passes_;  // computed
  std::shared_ptr<void> test_shown_;
  std::optional<std::uint64_t> tested_clock_;
  std::uint64_t tested_phases_ = 0;

  std::optional<std::uint64_t> snapshot_version_;  // the last one asked for
  std::size_t snapshots_pending_ = 0;              // copied, not yet on disk
  std::string snapshot_error_;                     // of the last one written
};

}  // namespace poseidon

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(poseidon::connect_solver)
