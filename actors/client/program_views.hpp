// actors/client/program_views.hpp - which workers a program has trained with, and from which clock on.
#pragma once
#include "messages/ids.hpp"
#include "messages/wire/codec.hpp"

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

/// All of them, oldest first; of two with the same first clock the later one counts. The caller adds, any thread may read.
class program_views {
 public:
  void add(program_view view) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(view));
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
  std::vector<program_view> all_;
};

}  // namespace poseidon
