// actors/core/pause_meter.hpp - how long training has paused for other work, as for a test phase.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>

namespace poseidon {

/// Pauses may overlap; times are handed in. Not thread-safe.
class pause_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  void begin(time_point now) {
    if (under_way_++ == 0) since_ = now;
  }
  /// An iteration has ended. It was in work when a pause was announced, so the pause begins only now.
  void computed(time_point now) {
    if (under_way_ > 0) since_ = std::max(since_, now);
  }
  /// True: no pause is under way any more; since() is when the last one began.
  bool end(time_point now) {
    if (--under_way_ > 0) return false;
    over_ += std::max(now - since_, duration{0});
    return true;
  }

  [[nodiscard]] time_point since() const { return since_; }
  /// All pauses until now together.
  [[nodiscard]] duration paused(time_point now) const {
    return over_ + (under_way_ > 0 ? std::max(now - since_, duration{0}) : duration{0});
  }

 private:
  std::size_t under_way_ = 0;
  time_point since_{};
  duration over_{};
};

}  // namespace poseidon
