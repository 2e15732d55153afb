// actors/client/shared_state.hpp
//
// What a program has beside its parameters, and what is to be worker 0's on all workers when the run begins: buffers, frozen weights. Worker
// 0's view says their digests; another worker answers which of them it has already, and worker 0 sends the rest from the program's memory to
// the other one's.
#pragma once
#include "messages/frames.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// In the program's memory, which stays until all has arrived.
struct shared_memory {
  std::string name, kind;
  std::span<std::byte> bytes;
};

/// As worker 0's view tells it.  Cost   a pass over all bytes.
[[nodiscard]] std::vector<frames::shared_entry> entries_of(const std::vector<shared_memory>& here);
/// In what the two lists differ, and what to do; empty: they are the same but for the bytes.
[[nodiscard]] std::string difference(const std::vector<shared_memory>& here,
                                     const std::vector<frames::shared_entry>& of_worker_0);

/// Where the frames begin in which an entry of this size travels.
[[nodiscard]] std::vector<std::uint64_t> pieces_of(std::uint64_t size);

/// How much of it is still on its way to or from the program's memory. Any thread may call it.
class state_in_flight {
 public:
  /// Before version 0 is here.
  void expect(std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    left_ = amount;
  }
  void arrived(std::uint64_t amount) {
    const std::lock_guard lock(mutex_);
    left_ -= amount;
    if (left_ == 0) over_.notify_all();
  }
  [[nodiscard]] bool is_over() const {
    const std::lock_guard lock(mutex_);
    return left_ == 0;
  }
  /// The run has failed: whoever waits goes on, to learn why from the fresh_board.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    over_.notify_all();
  }
  enum class answer { over, not_yet, closed };
  /// Waits until nothing is on its way.
  [[nodiscard]] answer wait(std::chrono::duration<double> limit) {
    std::unique_lock lock(mutex_);
    (void)over_.wait_for(lock, limit, [&] { return left_ == 0 || closed_; });
    return left_ == 0 ? answer::over : closed_ ? answer::closed : answer::not_yet;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable over_;
  std::uint64_t left_ = 0;
  bool closed_ = false;
};

}  // namespace poseidon
