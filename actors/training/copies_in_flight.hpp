// actors/training/copies_in_flight.hpp
//
// How far an asynchronous device is known to have come with the work of one replica's stream: the stream counts each copy
// to the host when it is begun, copy_out when it has finished. That a stream has nothing to issue does not mean that its
// device is idle.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

namespace poseidon {

class copies_in_flight {
 public:
  void begun() { in_flight_.fetch_add(1, std::memory_order_relaxed); }
  void finished(std::int64_t now) {
    last_ns_.store(now, std::memory_order_relaxed);
    in_flight_.fetch_sub(1, std::memory_order_release);
  }
  /// The earliest time, not before `since`, from which the device may have been idle; nothing while copies are in
  /// flight. The device may have been busy for longer, with work whose results are not copied.
  [[nodiscard]] std::optional<std::int64_t> idle_since(std::int64_t since) const {
    if (in_flight_.load(std::memory_order_acquire) > 0) return std::nullopt;
    return std::max(since, last_ns_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::int64_t> in_flight_{0}, last_ns_{0};
};

}  // namespace poseidon
