// actors/routes/bandwidth_probe.hpp
//
// Measures how many bits per second a node can send. It sends to all its peers at the same time, in rounds that grow
// until one takes long enough to be timed. The first round times a round trip. Both this round and the last one are sent
// twice, and the faster time counts: the slower one was held up by something other than the line, as by a kernel that
// confirms late (40 ms) or by a busy processor. Arithmetic only: protocol_selector sends the frames before the first
// clock, and node where training leaves the lines idle.
#pragma once
#include "messages/ids.hpp"
#include "messages/link.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace poseidon {

class bandwidth_probe {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct round {
    std::uint32_t number = 0;
    std::size_t bytes = 0;  ///< to each peer
  };

  /// `expected_mbit_s`: the node's rate to all peers together, at which the first round that counts takes long enough; 0:
  /// rounds begin small. `first_number`: the first round's, which no earlier probe has used: its late answers do not count.
  explicit bandwidth_probe(std::size_t peers, double expected_mbit_s = 0,
                           std::uint32_t first_number = 0)
      : peers_(peers), expected_mbit_s_(expected_mbit_s), first_number_(first_number) {}

  /// The first round: a single byte, which takes a round trip. The second round is equal to it.
  round begin(time_point now);

  /// A peer has received all of a round; answers to earlier rounds are ignored. Returns the next round when all peers
  /// have received this one, or nothing after the last: then mbit_s() is known.
  std::optional<round> heard(worker_id peer, std::uint32_t number, time_point now);

  /// Rate out of this node to all peers together; 0 until it is known. All peers are sent the same, so where one link is
  /// slower than the others, all wait for it: its rate counts for each.
  [[nodiscard]] double mbit_s() const { return mbit_s_; }

  [[nodiscard]] double expected_mbit_s() const { return expected_mbit_s_; }

  /// The first number that a next probe may use.
  [[nodiscard]] std::uint32_t next_number() const { return now_.number + 1; }

 private:
  std::size_t peers_;
  double expected_mbit_s_;
  std::uint32_t first_number_;
  round now_;
  time_point began_;
  double trip_s_ = 0;
  std::optional<double> first_s_;  // of a round that is sent a second time
  std::set<worker_id> heard_;
  double mbit_s_ = 0;
};

/// The frames of a round for each peer. To be sent frame by frame over all links, so that all links are busy at the same time.
[[nodiscard]] std::vector<send_frame> frames_of(const bandwidth_probe::round& r,
                                                std::uint64_t priority = 0);

}  // namespace poseidon
