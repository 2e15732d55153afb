// actors/training/clock_plan.hpp
//
// Which clock a solver begins next, and where it has to hold, to pause or to end. Arithmetic on clocks, without a mailbox.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

namespace poseidon {

class clock_plan {
 public:
  /// `end`: the version that training ends with; all clocks below it are trained.
  explicit clock_plan(std::uint64_t end = 0) : end_(end), last_(end) {}

  void begin(std::uint64_t first_clock) { first_ = clock_ = first_clock; }
  [[nodiscard]] std::uint64_t first() const { return first_; }
  /// In work, or begun next.
  [[nodiscard]] std::uint64_t clock() const { return clock_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  /// The clock in work has been issued.
  void advance() { ++clock_; }

  enum class step { end, pause, hold, train };
  /// What comes at the boundary before clock().
  [[nodiscard]] step next() const;

  // A change of the view.
  /// No clock begins that has not begun. `in_work`: clock() has. Returns  that clock.
  std::uint64_t hold(bool in_work);
  /// All nodes pause before that clock.
  void pause_at(std::uint64_t clock);
  /// The graph has been rebuilt for clock().
  void resume();
  /// Members are lost: clocks from this one on are trained again, whatever has been agreed on for later ones, an early end included.
  void go_back(std::uint64_t clock);

  /// The version with which training can end soonest: a clock in work is finished, one that has not begun never begins.
  [[nodiscard]] std::uint64_t soonest_end(bool in_work) const {
    return std::max(least_end_, in_work ? clock_ + 1 : clock_);
  }
  /// The user wants the end, or all nodes have agreed on it.
  void end_at(std::uint64_t version);
  [[nodiscard]] bool ends_early() const { return ends_early_; }
  /// This node was ahead: what it has begun beyond the end is left incomplete.
  void leave_what_is_beyond() { clock_ = std::min(clock_, end_); }

 private:
  std::uint64_t first_ = 0, clock_ = 0, end_ = 0;
  std::uint64_t last_ = 0;  // the end that the solver's file asks for
  bool ends_early_ = false;
  std::optional<std::uint64_t> held_;    // begins after pause_at
  std::optional<std::uint64_t> paused_;  // begins after resume
  std::uint64_t least_end_ = 0;
};

}  // namespace poseidon
