// replay/sleep_clock.hpp - the clock of kernels that do not compute; tests have one of their own.
#pragma once
#include <cstdint>
#include <memory>

namespace poseidon::replay {

/// Nanoseconds on the clock of pass::issued_ns. Any thread.
class sleep_clock {
 public:
  virtual ~sleep_clock() = default;
  [[nodiscard]] virtual std::int64_t now_ns() = 0;
  /// Returns at `deadline_ns` or a little later; immediately if it has passed.
  virtual void sleep_until(std::int64_t deadline_ns) = 0;
  /// Called once in each thread that will sleep.
  virtual void enter_thread() = 0;
};

/// The machine's monotonic clock.
[[nodiscard]] std::shared_ptr<sleep_clock> make_sleep_clock();

}  // namespace poseidon::replay
