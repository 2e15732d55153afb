// actors/telemetry/pauses.hpp - for what training pauses now, and for how long it has: test phases.
#pragma once
#include "actors/core/long_task.hpp"
#include "actors/core/pause_meter.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// Any thread.
class pauses {
 public:
  using clock = std::chrono::steady_clock;

  /// Training pauses for the task until the result is destroyed, which may outlive this object. `shown` is kept as long.
  [[nodiscard]] std::shared_ptr<void> begin(long_task task, std::shared_ptr<void> shown);
  /// An iteration has ended.
  void computed();
  /// All pauses until now together, in seconds.
  [[nodiscard]] double paused_s() const;

  struct work {
    std::string what;
    std::uint64_t done = 0, total = 0;
  };
  /// What training waits for now; the newest, if there are several.
  [[nodiscard]] std::optional<work> under_way() const;

 private:
  struct state {
    std::mutex mutex;
    pause_meter meter;
    std::vector<std::shared_ptr<const long_task>> tasks;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace poseidon
