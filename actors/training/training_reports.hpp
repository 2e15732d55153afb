// actors/training/training_reports.hpp
//
// What the user sees of training: how far it is, and the values of outputs, which each node sums and the leader merges. A
// part of `solver`, without a mailbox.
#pragma once
#include "actors/training/output_reports.hpp"
#include "actors/training/run_goals.hpp"
#include "actors/training/solver_setup.hpp"
#include "messages/frames.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace poseidon {

/// What ends a run whose training has produced a NaN or an infinity.
[[nodiscard]] training_failed divergence(const nonfinite_found& m,
                                         const ::caffe::SolverParameter& solver);

class training_reports {
 public:
  /// `setup` is the solver's, and outlives this.
  explicit training_reports(const solver_setup& setup);

  /// Before `setup` says what the next view asks of this node; then connect().
  void leave_part(std::uint64_t next_first_clock);
  void connect(std::vector<output_value> outputs);
  void begin(std::uint64_t first_clock);
  /// Clocks from this one on are computed again. Before leave_part().
  void go_back(std::uint64_t clock);
  /// All clocks below `done` of those below `end` have been computed.
  void show_step(std::uint64_t done, std::uint64_t end) const;

  /// Adds the outputs of a training pass. True: the outputs of its clock are complete.
  [[nodiscard]] bool add(const outputs_ready& m);
  /// The outputs of all clocks below this one have arrived.
  [[nodiscard]] std::uint64_t computed() const { return computed_; }
  [[nodiscard]] bool has_outputs() const { return !outputs_.empty(); }
  /// What the leader is to show of the clock that add() has completed; empty: not due.
  [[nodiscard]] std::optional<frames::worker_report> report(std::uint64_t end);

  /// The same when training is told to end with the last clock that add() has completed, if report() was not due then.
  [[nodiscard]] std::optional<frames::worker_report> last_report(std::uint64_t end);

  /// The leader's: a node's report. Shows the clock when all nodes have reported it. `tests`: the outputs of the test nets.
  /// Returns  what a test has found, when all nodes have reported it.
  std::optional<test_found> take(worker_id from, const frames::worker_report& r, std::uint64_t end,
                                 const std::vector<solver_net>& tests);

 private:
  [[nodiscard]] frames::worker_report report_now();
  [[nodiscard]] bool displays(std::uint64_t clock, std::uint64_t display) const;

  const solver_setup& setup_;
  std::vector<output_value> outputs_;
  output_sums sums_;
  std::vector<double> last_;  // sums of the last complete clock
  smoothed_loss loss_;
  report_board board_;
  std::uint64_t first_clock_ = 0, computed_ = 0;  // first_clock_: of the view
  std::uint64_t images_before_ = 0;               // the view, of all workers
  overlap_meter::totals overlap_before_;          // the view, of all workers, while this node led
  overlap_meter::totals overlap_of_view_;         // of all workers, as reported last
  bool begun_ = false;
  bool reported_ = false;  // the last complete clock
};

}  // namespace poseidon
