// actors/routes/send_rate_meter.hpp
//
// How many bits per second this node's links send together, from their kernels' counters while training runs. Arithmetic
// only. A bandwidth_probe measures the same rate while there is nothing else to send.
#pragma once
#include "messages/ids.hpp"
#include "messages/wire/tcp_flow.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

namespace poseidon {

class send_rate_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct reading {
    double mbit_s = 0;
    /// Fraction of the window (0 to 1) in which data was waiting to be sent. With short bursts the rate is less exact:
    /// kernels count in ticks, and peers confirm with a delay.
    double busy = 0;
  };

  explicit send_rate_meter(std::size_t peers = 0) : peers_(peers) {}

  /// The counters of the link to `peer`. Returns a reading at the end of a window in which there was enough to send and
  /// the line limited the rate, not the receiver, and not a machine that had no core for the sender.
  ///
  /// All peers are sent about the same bytes at about the same times, so the time of the link that was busy longest
  /// covers the others'. Where one line is slower than the others, all wait for it: its rate counts for each, as in
  /// bandwidth_probe.
  std::optional<reading> heard(worker_id peer, const tcp_flow& flow, time_point now);

  /// Begins a new window: what has been sent until now does not count.
  void forget();

 private:
  struct link {
    tcp_flow first, last;
    bool heard = false;  // since the shortest window has passed
  };
  void begin(time_point now);

  std::size_t peers_;
  std::optional<time_point> since_;
  std::map<worker_id, link> links_;
};

}  // namespace poseidon
