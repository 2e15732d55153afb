// actors/routes/link_watch.hpp
//
// How fast this node's links are while it trains. A line that training fills for most of a window is read off what it
// sends (send_rate_meter); one that training leaves idle is timed for some 50 ms of each interval (bandwidth_probe), if a
// rise would matter; sooner, a few times, where the last rate was another one. The arithmetic only: the node hands in what it hears, and sends what this answers.
#pragma once
#include "actors/routes/bandwidth_probe.hpp"
#include "actors/routes/send_rate_meter.hpp"

#include <chrono>
#include <cstddef>
#include <optional>

namespace poseidon {

class link_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// What this node's links carry together.
  struct rate {
    double mbit_s = 0;
    bool probed = false;  ///< as in frames::send_rate
  };
  /// What to do now; at most one of the two.
  struct advice {
    std::optional<rate> tell;                     ///< the leader
    std::optional<bandwidth_probe::round> probe;  ///< all peers, after everything else
  };

  /// `limit_mbit_s`: this node's own limit for each link; a line is not asked for what the limit keeps back. 0: none.
  explicit link_watch(std::size_t peers = 0, double limit_mbit_s = 0)
      : peers_(peers), limit_mbit_s_(limit_mbit_s), meter_(peers) {}

  /// What a link's kernel tells while training goes on. `waits_for_a_rise`: routes would change if an idle line were faster.
  [[nodiscard]] advice heard(worker_id peer, const tcp_flow& flow, bool waits_for_a_rise,
                             time_point now);
  /// Training pauses: what was sent until now counts for nothing.
  void forget() { meter_.forget(); }

  /// Has a round of probes ever been sent?
  [[nodiscard]] bool probes() const { return timing_.has_value(); }
  /// A peer has all of a round.
  [[nodiscard]] advice answered(worker_id peer, std::uint32_t round, time_point now);

 private:
  [[nodiscard]] rate limited(double mbit_s, bool probed) const;

  std::size_t peers_;
  double limit_mbit_s_;
  send_rate_meter meter_;
  std::optional<bandwidth_probe> timing_;  // the last one, or that under way
  int unlike_ = 0;                         // rates in succession, each other than the one before
  time_point next_at_{};
};

}  // namespace poseidon
