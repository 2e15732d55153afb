// actors/client/program_views.hpp - which workers a program has trained with, and from which clock on.
#pragma once
#include "messages/ids.hpp"
#include "messages/wire/codec.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace poseidon {

/// A view as its programs see it.
struct program_view {
  std::uint64_t epoch = 0;
  std::uint64_t first_clock = 0;  ///< the first one whose means are over these workers
  std::vector<seat_id> seats;     ///< by worker
  worker_id self = no_worker;
};

/// Those that count, oldest first, by rising first clock. The caller adds, any thread may read.
class program_views {
 public:
  void add(program_view view) {
    const std::lock_guard lock(mutex_);
    // Of those no clock counts any more.
    while (!all_.empty() && all_.back().first_clock >= view.first_clock) all_.pop_back();
    all_.push_back(std::move(view));
    changed_.notify_all();
  }
  /// The run is over: whoever waits goes on, to learn why from the fresh_board.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  /// Waits until training has begun, or the run is over.  Returns  false: neither within `limit`.
  [[nodiscard]] bool wait_for_first(std::chrono::duration<double> limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return !all_.empty() || closed_; });
  }
  /// Without workers: training has not begun.
  [[nodiscard]] program_view newest() const {
    const std::lock_guard lock(mutex_);
    return all_.empty() ? program_view{} : all_.back();
  }
  [[nodiscard]] std::vector<program_view> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::vector<program_view> all_;
};

}  // namespace poseidon
