// actors/client/clock_gate.hpp
//
// Lets a program begin its clocks, and stops it before one while the nodes change routes: which route a gradient takes holds for
// a whole clock, from the first module of its forward pass on.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace poseidon {

/// Any thread may call it: begin() is the program's, the others are the caller's.
class clock_gate {
 public:
  /// Begins `clock`, and all before it; waits while it may not begin.  Returns  false: it may not within `limit`.
  [[nodiscard]] bool begin(std::uint64_t clock, std::chrono::duration<double> limit);

  /// No clock begins that has not begun.  Returns  that clock.
  [[nodiscard]] std::uint64_t hold();
  /// Clocks before this one may begin, and none after them.
  void pause_at(std::uint64_t clock);
  /// All clocks may begin.
  void open();
  /// The run is over: whoever waits goes on, to learn why from the fresh_board.
  void close();
  [[nodiscard]] bool is_closed() const { return closed_; }

 private:
  void let_begin(std::uint64_t end);

  std::atomic<std::uint64_t> begun_{0};  // clocks
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();  // clocks before it may begin
  std::condition_variable moved_;
};

}  // namespace poseidon
