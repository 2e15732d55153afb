// actors/training/copies_in_flight.hpp
//
// How far a device that goes on by itself is known to be with what one replica's stream has handed it: the stream counts
// what is to come home, copy_out when it has. A host that has nothing more to hand over is not a device that stands still.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

namespace poseidon {

class copies_in_flight {
 public:
  void sent() { under_way_.fetch_add(1, std::memory_order_relaxed); }
  void here(std::int64_t now) {
    last_ns_.store(now, std::memory_order_relaxed);
    under_way_.fetch_sub(1, std::memory_order_release);
  }
  /// From when on, not before `since`, the device may have had nothing to do; nothing: it is still busy. It may have been
  /// busy for longer, with work of which nothing comes home.
  [[nodiscard]] std::optional<std::int64_t> idle_since(std::int64_t since) const {
    if (under_way_.load(std::memory_order_acquire) > 0) return std::nullopt;
    return std::max(since, last_ns_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::int64_t> under_way_{0}, last_ns_{0};
};

}  // namespace poseidon
