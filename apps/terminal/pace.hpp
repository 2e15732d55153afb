// apps/terminal/pace.hpp - how fast something has gone of late, and how long the rest takes.
#pragma once
#include <chrono>
#include <deque>
#include <optional>

namespace poseidon::app {

/// Counts what is done over a window of time, so that the time left follows a run that gets slower or faster, and what a
/// resumed run did before counts for nothing.
class pace {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// At least three intervals count, however long they are.
  explicit pace(std::chrono::seconds window = std::chrono::seconds{60}) : window_(window) {}

  /// So much is done now. The first call is where it began.
  void at(double done, time_point now);
  /// Something else was done in that time: it does not count.
  void stood_aside(time_point since, time_point until);

  /// Per second. Empty before there is a second reading.
  [[nodiscard]] std::optional<double> per_s() const;
  /// Seconds until `total` is done. Goes down between readings, but not by more than the next one would take off: what
  /// stands still has no less to do.
  [[nodiscard]] std::optional<double> left_s(double total, time_point now) const;
  /// Since the last reading, without what was stood_aside() after it.
  [[nodiscard]] double silent_s(time_point now) const;
  /// Of one unit, since the window began; 0 before there is a second reading.
  [[nodiscard]] double usual_s() const;
  [[nodiscard]] bool begun() const { return !readings_.empty(); }

 private:
  struct reading {
    time_point when;
    double done;
  };
  std::chrono::seconds window_;
  std::deque<reading> readings_;
};

}  // namespace poseidon::app
