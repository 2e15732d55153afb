// apps/terminal/task_list.hpp - long tasks under way, each with a bar once it has lasted two seconds.
#pragma once
#include "actors/core/long_task.hpp"
#include "apps/terminal/pace.hpp"
#include "apps/terminal/text.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace poseidon::app {

/// Any thread.
class task_list {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds silent_for{2};

  /// The task is shown until the result is destroyed, which may outlive the list. `ended` is then called; may be
  /// empty.
  [[nodiscard]] std::shared_ptr<void> begin(long_task task, time_point now,
                                            std::function<void()> ended = {});

  /// The newest `most` tasks that have lasted and are not complete, oldest first.
  [[nodiscard]] std::vector<styled_line> lines(std::size_t columns, time_point now,
                                               std::size_t most = 2);
  /// Whether any task is under way, however short.
  [[nodiscard]] bool any() const;

 private:
  struct entry {
    long_task task;
    time_point since;
    pace done;
  };
  struct entries {
    std::mutex mutex;
    std::vector<std::shared_ptr<entry>> all;
  };
  [[nodiscard]] static bool over(const entry& e);
  std::shared_ptr<entries> entries_ = std::make_shared<entries>();
};

/// One line for a task of which `done` is finished after the given seconds. `left_s` below 0: not known.
[[nodiscard]] styled_line task_line(const long_task& task, std::uint64_t done, double lasted_s,
                                    double left_s, std::size_t columns);

}  // namespace poseidon::app
