// apps/node/shown_run.hpp - everything that a run is shown on: the terminal, and the files that options name.
#pragma once
#include "apps/node/options.hpp"
#include "apps/terminal/caffe_log.hpp"
#include "apps/terminal/progress_group.hpp"
#include "apps/terminal/run_display.hpp"
#include "models/solver/solver_file.hpp"

#include <memory>

namespace poseidon {
struct node_result;
struct node_setup;
}  // namespace poseidon

namespace poseidon::app {

class shown_run {
 public:
  explicit shown_run(const node_options& o);

  /// --log-dir, before anything is read, so that the file has every mistake.
  /// Errors   spec_error: the file cannot be written.
  void open_log(const node_options& o);
  /// --csv and --tensorboard, when it is known whether the run is resumed, and where.
  /// Errors   spec_error: the file cannot be written.
  void open_tables(const node_options& o, const node_setup& setup);

  /// The page's data beside the snapshots. `setup`: prepared; a joiner's has no run, and nothing is kept.
  void open_record(const node_setup& setup);

  [[nodiscard]] const std::shared_ptr<run_display>& display() const { return display_; }
  [[nodiscard]] std::shared_ptr<progress> all() const { return all_; }
  void began(const solver_file& solver) const;
  void ended(const node_result& result);

 private:
  std::shared_ptr<run_display> display_;
  std::shared_ptr<progress_group> all_;
  std::shared_ptr<log_file> log_;  // one of them; null: none
};

}  // namespace poseidon::app
