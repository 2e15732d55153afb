// actors/links/stall_watch.hpp - tells a peer that takes little from one that takes nothing.
#pragma once
#include <chrono>
#include <cstddef>
#include <optional>

namespace poseidon {

/// Told after each attempt to write how much the peer took. It reads no clock: the caller passes the time.
class stall_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  explicit stall_watch(std::chrono::milliseconds limit) : limit_(limit) {}

  /// New data waits for the peer, and none did before.
  void offered(time_point now) { since_ = now; }
  /// Returns  how long the peer has taken nothing, once that is the limit.
  [[nodiscard]] std::optional<std::chrono::steady_clock::duration> after_write(time_point now,
                                                                               std::size_t taken) {
    if (taken > 0) since_ = now;
    if (now - since_ < limit_) return std::nullopt;
    return now - since_;
  }

 private:
  std::chrono::milliseconds limit_;
  time_point since_{};
};

}  // namespace poseidon
