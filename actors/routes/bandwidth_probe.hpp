// actors/routes/bandwidth_probe.hpp
//
// How many bits a second a node can send, by sending: to all its peers at once, in rounds that grow until one takes
// long enough to be timed. That one is sent twice, as is the first, which times a round trip, and the faster time
// counts: what held up the other, as a kernel that confirms late (40 ms) or a busy processor, is not the line. The
// arithmetic only; who asks sends the frames: protocol_selector before the first clock, and a node whose lines training
// leaves idle.
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

  /// `expected_mbit_s`: of the node, all peers together; the first round that counts takes long enough at that rate. 0: it
  /// begins small. `first_number`: of its rounds, so that what an earlier probe was told is not taken for an answer.
  explicit bandwidth_probe(std::size_t peers, double expected_mbit_s = 0,
                           std::uint32_t first_number = 0)
      : peers_(peers), expected_mbit_s_(expected_mbit_s), first_number_(first_number) {}

  /// The first round, which is over when a round trip is: its byte is no load. The second is as it.
  round begin(time_point now);

  /// A peer has heard all of a round; what is not of the round under way counts for nothing. Answers with the next
  /// round when all have heard this one, but for the last: then mbit_s() is known.
  std::optional<round> heard(worker_id peer, std::uint32_t number, time_point now);

  /// Out of this node, all peers together; 0 until it is known. Where all get the same and one is slow, that one is
  /// what all wait for, so its rate counts for each.
  [[nodiscard]] double mbit_s() const { return mbit_s_; }

  [[nodiscard]] double expected_mbit_s() const { return expected_mbit_s_; }

  /// What the next probe's first number may be.
  [[nodiscard]] std::uint32_t next_number() const { return now_.number + 1; }

 private:
  std::size_t peers_;
  double expected_mbit_s_;
  std::uint32_t first_number_;
  round now_;
  time_point began_;
  double trip_s_ = 0;
  std::optional<double> first_s_;  // that a round took, while it is sent again
  std::set<worker_id> heard_;
  double mbit_s_ = 0;
};

/// What to send to each peer for a round: frame by frame over all links, so that none is done before the others begin.
[[nodiscard]] std::vector<send_frame> frames_of(const bandwidth_probe::round& r,
                                                std::uint64_t priority = 0);

}  // namespace poseidon
