// actors/routes/send_rate_meter.hpp
//
// How many bits a second this node's links take, all together, from what their kernels tell while training goes on: the
// arithmetic only. bandwidth_probe asks the same before there is anything to send, by sending.
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
    /// Of the window, 0 to 1: in how much there was something to send. In short bursts a kernel that counts in ticks, and
    /// peers that take a moment to confirm, make a line look slower, or faster, than it is.
    double busy = 0;
  };

  explicit send_rate_meter(std::size_t peers = 0) : peers_(peers) {}

  /// The counters of the link to `peer`. Answers when a window is over in which there was enough to send, and the line was
  /// what it waited for.
  ///
  /// All peers are sent about the same at about the same times, so the link that was busy longest was so while the
  /// others were. It is also the one that all wait for, where one line is slower than the others: then its rate counts
  /// for each, as in bandwidth_probe.
  std::optional<reading> heard(worker_id peer, const tcp_flow& flow, time_point now);

  /// What was sent until now counts for nothing.
  void forget();

 private:
  struct link {
    tcp_flow first, last;
    bool heard = false;  // since the window is long enough, so that all links' are as long
  };
  void begin(time_point now);

  std::size_t peers_;
  std::optional<time_point> since_;
  std::map<worker_id, link> links_;
};

}  // namespace poseidon
