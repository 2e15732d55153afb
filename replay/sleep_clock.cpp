#include "replay/sleep_clock.hpp"

#include <chrono>
#include <ctime>
#include <sys/prctl.h>

namespace poseidon::replay {

namespace {

class monotonic_clock final : public sleep_clock {
 public:
  std::int64_t now_ns() override {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  void sleep_until(std::int64_t deadline_ns) override {
    const timespec until{deadline_ns / 1'000'000'000, deadline_ns % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }  // a signal
  }

  /// Linux groups wake-ups within 50 us unless told otherwise, which is longer than a small layer takes.
  void enter_thread() override { prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0); }
};

}  // namespace

std::shared_ptr<sleep_clock> make_sleep_clock() {
  return std::make_shared<monotonic_clock>();
}

}  // namespace poseidon::replay
