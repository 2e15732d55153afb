#include "actors/client/clock_gate.hpp"

#include <algorithm>

namespace poseidon {

clock_gate::answer clock_gate::begin(std::uint64_t clock, std::chrono::duration<double> limit) {
  if (clock < begun_.load(std::memory_order_acquire)) return answer::begun;
  std::unique_lock lock(mutex_);
  const auto may = [&] { return clock < end_; };
  // A limit of years would overflow the clock.
  const auto most = std::min(limit, std::chrono::duration<double>(1e8));
  (void)moved_.wait_for(lock, most, [&] { return may() || wants_state_; });
  if (!may()) {
    if (!wants_state_) return answer::not_yet;
    asked_ = clock;
    return answer::wants_state;
  }
  asked_.reset();
  begun_.store(std::max(begun_.load(), clock + 1), std::memory_order_release);
  return answer::begun;
}

clock_gate::gift clock_gate::give_state(std::uint64_t clock) {
  const std::lock_guard lock(mutex_);
  if (asked_ != clock) return gift::never_asked;
  if (!wants_state_ || end_ != clock) return gift::too_late;
  wants_state_ = false;
  return gift::wanted;
}

void clock_gate::start_at(std::uint64_t clock) {
  begun_.store(clock, std::memory_order_release);
}

std::uint64_t clock_gate::hold() {
  const std::lock_guard lock(mutex_);
  end_ = begun_;
  return end_;
}

void clock_gate::let_begin(std::uint64_t end, bool wants_state) {
  const std::lock_guard lock(mutex_);
  end_ = end;
  wants_state_ = wants_state;
  moved_.notify_all();
}

void clock_gate::pause_at(std::uint64_t clock, bool wants_state) {
  let_begin(clock, wants_state);
}

void clock_gate::close() {
  closed_ = true;
  open();
}

void clock_gate::open() {
  let_begin(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace poseidon
