// apps/terminal/run_display.hpp - a training as its user sees it: the live lines, and what the two ways of writing it down
// (console.hpp, json_console.hpp) share.
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

/// Of --log-level's words.
[[nodiscard]] verbosity verbosity_of(const std::string& word);

class run_display : public progress {
 public:
  /// `nodes`: of the cluster. `live`: where lines are drawn; none at all with verbosity::quiet.
  run_display(verbosity level, std::size_t nodes, std::optional<terminal> live);

  void trained(const iteration& i, const std::vector<output_value>& outputs) final;
  void stepped(const step& s) final;
  [[nodiscard]] std::shared_ptr<void> working(long_task task) final;

  /// Once, when the run is over or has not even begun; takes the live lines away. `reason`: why it failed, or empty.
  virtual void ended(int exit_code, const std::string& reason) = 0;
  [[nodiscard]] screen& lines() { return screen_; }

 protected:
  /// Values and rates of a display interval, at every level.
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
  std::shared_ptr<measured> run_;  // tasks that end after this object still tell it
  task_list tasks_;
  screen screen_;  // last: its thread paints from what is above
};

}  // namespace poseidon::app
