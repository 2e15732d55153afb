// actors/client/push_batch.hpp - small gradients that a program pushes soon after one another, and of which its node hears together.
#pragma once
#include "messages/client.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace poseidon {

/// To wake the node's thread costs the program as much as all else of a push. So a gradient is told at once if it is large, and else
/// with the next ones; what waits is told when it is many, much or old, and with the last gradient of a clock. Whoever is about to
/// wait for the node takes the rest first. Any thread may call it.
class push_batch {
 public:
  using time = std::chrono::steady_clock::time_point;
  static constexpr std::size_t most = 128, most_bytes = 64 * 1024;
  static constexpr std::chrono::microseconds most_age{800};

  /// `parameters`: so many are pushed in a clock.
  explicit push_batch(std::size_t parameters) : parameters_(parameters) {}

  /// Returns  true: take() them now.
  [[nodiscard]] bool add(const gradients_lent::gradient& g, std::size_t bytes, time now) {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) since_ = now;
    waiting_.push_back(g);
    bytes_ += bytes;
    holds_ = true;
    return ++pushed_ % parameters_ == 0 || waiting_.size() >= most || bytes_ >= most_bytes ||
           now - since_ >= most_age;
  }

  /// In the order in which they came.
  [[nodiscard]] gradients_lent take() {
    if (!holds_) return {};
    const std::lock_guard lock(mutex_);
    holds_ = false;
    bytes_ = 0;
    return {std::exchange(waiting_, {})};
  }

 private:
  std::mutex mutex_;
  std::vector<gradients_lent::gradient> waiting_;
  std::size_t parameters_, bytes_ = 0;
  std::uint64_t pushed_ = 0;
  time since_;
  std::atomic<bool> holds_{false};
};

}  // namespace poseidon
