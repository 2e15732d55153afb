// actors/links/rate_bucket.hpp - holds what is written to a rate.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>

namespace poseidon {

/// A token bucket that may go into debt by one write; nothing more is written until the debt is paid. So a write is never
/// split, and the next frame is chosen when it may go, not before. It reads no clock.
class rate_bucket {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// 0 Mbit/s: no limit.
  rate_bucket(double mbit_s, time_point now) : bytes_per_s_(mbit_s * 1e6 / 8), at_(now) {}

  void refill(time_point now) {
    const auto seconds = std::chrono::duration<double>(now - at_).count();
    credit_ = std::min(most_credit(), credit_ + bytes_per_s_ * seconds);
    at_ = now;
  }
  void spend(std::size_t bytes) { credit_ -= static_cast<double>(bytes); }
  /// How long nothing more may be written, as of the last refill().
  [[nodiscard]] std::chrono::milliseconds wait() const {
    if (bytes_per_s_ <= 0 || credit_ >= 0) return std::chrono::milliseconds{0};
    return std::chrono::milliseconds{1 + static_cast<long>(-credit_ * 1000 / bytes_per_s_)};
  }
  /// Whether a write of `bytes` uses up all credit, however full the bucket is.
  [[nodiscard]] bool is_emptied_by(std::size_t bytes) const {
    return bytes_per_s_ > 0 && static_cast<double>(bytes) >= most_credit();
  }

 private:
  // A wake-up can be late by milliseconds; the credit saved meanwhile may be spent in one write.
  [[nodiscard]] double most_credit() const { return std::max(bytes_per_s_ * 0.02, 4096.0); }

  double bytes_per_s_;
  double credit_ = 0;
  time_point at_;
};

}  // namespace poseidon
