#include "actors/client/clock_gate.hpp"

#include <algorithm>

namespace poseidon {

bool clock_gate::begin(std::uint64_t clock, std::chrono::duration<double> limit) {
  if (clock < begun_.load(std::memory_order_acquire)) return true;
  std::unique_lock lock(mutex_);
  const auto may = [&] { return clock < end_; };
  // A limit of years would overflow the clock.
  const auto most = std::min(limit, std::chrono::duration<double>(1e8));
  if (!may() && !moved_.wait_for(lock, most, may)) return false;
  begun_.store(std::max(begun_.load(), clock + 1), std::memory_order_release);
  return true;
}

std::uint64_t clock_gate::hold() {
  const std::lock_guard lock(mutex_);
  end_ = begun_;
  return end_;
}

void clock_gate::let_begin(std::uint64_t end) {
  const std::lock_guard lock(mutex_);
  end_ = end;
  moved_.notify_all();
}

void clock_gate::pause_at(std::uint64_t clock) {
  let_begin(clock);
}

void clock_gate::close() {
  closed_ = true;
  open();
}

void clock_gate::open() {
  let_begin(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace poseidon
