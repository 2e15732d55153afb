// apps/terminal/pace.hpp - the recent speed of some work, and the time left.
#pragma once
#include <chrono>
#include <deque>
#include <optional>

namespace poseidon::app {

/// Counts progress over a window of time, so that the time left follows a run that gets slower or faster, and a resumed
/// run's earlier progress is not counted.
class pace {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// The window covers at least three intervals, however long they are.
  explicit pace(std::chrono::seconds window = std::chrono::seconds{60}) : window_(window) {}

  /// Reports the progress until now. The first call marks the beginning.
  void at(double done, time_point now);
  /// Leaves out a time in which other work was done.
  void stood_aside(time_point since, time_point until);

  /// Progress per second. Empty before the second reading.
  [[nodiscard]] std::optional<double> per_s() const;
  /// Seconds until `total` is done. It falls between readings, but at most by the expected time of one reading, because
  /// work that has stopped is not nearer to its end.
  [[nodiscard]] std::optional<double> left_s(double total, time_point now) const;
  /// Time since the last reading, without the time given to stood_aside() after it.
  [[nodiscard]] double silent_s(time_point now) const;
  /// Time of one unit since the window began; 0 before the second reading.
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
