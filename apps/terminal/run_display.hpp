// apps/terminal/run_display.hpp - shows training to the user: the live lines, and the common part of the two reporters
// (console.hpp, json_console.hpp).
#pragma once
#include "actors/core/progress.hpp"
#include "apps/terminal/run_lines.hpp"
#include "apps/terminal/screen.hpp"
#include "apps/terminal/task_list.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace poseidon::app {

enum class verbosity { quiet, info, debug };

/// The words of --log-level.
[[nodiscard]] verbosity verbosity_of(const std::string& word);

class run_display : public progress {
 public:
  /// `nodes`: number of nodes in the cluster. `live`: the stream for live lines, which verbosity::quiet leaves out.
  run_display(verbosity level, std::size_t nodes, std::optional<terminal> live);

  void trained(const iteration& i, const std::vector<output_value>& outputs) final;
  void stepped(const step& s) final;
  [[nodiscard]] std::shared_ptr<void> working(long_task task) final;

  /// Called once on the first node, before training begins. `policy`: the solver's lr_policy.
  virtual void began(const std::string& net, const std::string& policy) {
    (void)net;
    (void)policy;
  }
  /// Called once, when the run has ended or could not begin; removes the live lines. `reason`: why it failed, or empty.
  virtual void ended(int exit_code, const std::string& reason) = 0;
  [[nodiscard]] screen& lines() { return screen_; }

 protected:
  /// Called with the values and rates of each display interval, at every log level.
  virtual void interval(const iteration& i, const std::vector<output_value>& outputs,
                        const run_meter::interval& rates) = 0;
  [[nodiscard]] verbosity level() const { return level_; }

 private:
  [[nodiscard]] std::vector<styled_line> painted(std::size_t columns);

  struct measured {
    explicit measured(std::size_t nodes) : meter(nodes) {}
    std::mutex mutex;
    run_meter meter;
    run_state state;
  };
  verbosity level_;
  std::shared_ptr<measured> run_;  // shared, because tasks may end after this object
  task_list tasks_;
  screen screen_;  // last member: its thread reads those above
};

}  // namespace poseidon::app
