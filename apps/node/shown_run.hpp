// apps/node/shown_run.hpp - everything that a run is shown on: the terminal, and the files that options name.
#pragma once
#include "apps/node/options.hpp"
#include "apps/terminal/caffe_log.hpp"
#include "apps/terminal/csv_file.hpp"
#include "apps/terminal/run_display.hpp"
#include "models/solver/solver_file.hpp"

#include <memory>

namespace poseidon {
struct node_result;
}

namespace poseidon::app {

[[nodiscard]] std::shared_ptr<run_display> display_of(const node_options& o);

/// What a run is shown on, and with --log-dir also the file that records it.
struct shown_run {
  std::shared_ptr<run_display> display;
  std::shared_ptr<log_file> log;
  std::shared_ptr<csv_file> table;

  void open_log(const node_options& o);
  void open_table(const node_options& o);
  [[nodiscard]] std::shared_ptr<progress> all() const {
    if (table) return table;
    if (log) return log;
    return display;
  }
  void began(const solver_file& solver) const;
  void ended(const node_result& result) const;
};

}  // namespace poseidon::app
