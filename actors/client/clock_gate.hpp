// actors/client/clock_gate.hpp
//
// Lets a program begin its clocks, and stops it before one while the view changes: which route a gradient takes, and who trains, holds for a
// whole clock. Where others are about to join, the program is asked there for what they need.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>

namespace poseidon {

/// Any thread may call it: begin() is the program's, the others are the caller's.
class clock_gate {
 public:
  enum class answer { begun, not_yet, wants_state };
  /// Begins `clock`, and all before it; waits while it may not begin.  Returns  not_yet: it may not within `limit`; wants_state: nor before the
  /// program has given its state (give_state).
  [[nodiscard]] answer begin(std::uint64_t clock, std::chrono::duration<double> limit);
  /// never_asked: begin() has not answered wants_state to this clock. too_late: it has, but who needed the state has gone since then.
  enum class gift { wanted, too_late, never_asked };
  /// The program is about to give the state of this clock, and is not asked for it again.
  [[nodiscard]] gift give_state(std::uint64_t clock);

  /// This worker has joined with this clock: those before it are the others'.
  void start_at(std::uint64_t clock);
  /// No clock begins that has not begun.  Returns  that clock.
  [[nodiscard]] std::uint64_t hold();
  /// Clocks before this one may begin, and none after them. `wants_state`: of that clock.
  void pause_at(std::uint64_t clock, bool wants_state = false);
  /// All clocks may begin.
  void open();
  /// The run is over: whoever waits goes on, to learn why from the fresh_board.
  void close();
  [[nodiscard]] bool is_closed() const { return closed_; }

 private:
  void let_begin(std::uint64_t end, bool wants_state = false);

  std::atomic<std::uint64_t> begun_{0};  // clocks
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();  // clocks before it may begin
  bool wants_state_ = false;
  std::optional<std::uint64_t> asked_;  // the clock whose state begin() has asked for last
  std::condition_variable moved_;
};

}  // namespace poseidon
