// actors/client/program_calls.hpp - since when a program has left its node alone.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>

namespace poseidon {

/// A run stands still where one program computes for long by itself, and only that program's node knows that it is the one. The program's
/// threads write, any thread may read.
class program_calls {
 public:
  using clock = std::chrono::steady_clock;

  /// A thread of the program waits for the run as long as this lives.
  class waits {
   public:
    explicit waits(program_calls& calls) : calls_(calls) { ++calls_.waiting_; }
    ~waits() {
      calls_.note(clock::now());
      --calls_.waiting_;
    }
    waits(const waits&) = delete;
    waits& operator=(const waits&) = delete;

   private:
    program_calls& calls_;
  };

  /// It has called, and does not wait.
  void note(clock::time_point now) {
    last_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  [[nodiscard]] bool some_wait() const { return waiting_.load() > 0; }
  /// For how long it has not called; nothing: a thread waits, or it has not called yet.
  [[nodiscard]] std::optional<clock::duration> away(clock::time_point now) const {
    const auto last = last_.load(std::memory_order_relaxed);
    if (last == 0 || some_wait()) return std::nullopt;
    return now - clock::time_point(clock::duration(last));
  }

 private:
  std::atomic<std::size_t> waiting_{0};  // threads
  std::atomic<clock::rep> last_{0};
};

}  // namespace poseidon
