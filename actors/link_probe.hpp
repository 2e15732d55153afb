// actors/link_probe.hpp
//
// How many bits a second a node can send, by sending: to all its peers at once, in rounds that grow until one takes
// long enough to be timed. The arithmetic only; protocol_selector sends the frames.
#pragma once
#include "messages/ids.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

namespace poseidon {

class link_probe {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct round {
    std::uint32_t number = 0;
    std::size_t bytes = 0;  ///< to each peer
  };

  explicit link_probe(std::size_t peers) : peers_(peers) {}

  /// The first round, which is over when a round trip is: its byte is no load.
  round begin(time_point now);

  /// A peer has heard all of a round; what is not of the round under way counts for nothing. Answers with the next
  /// round when all have heard this one, but for the last: then mbit_s() is known.
  std::optional<round> heard(worker_id peer, std::uint32_t number, time_point now);

  /// Out of this node, all peers together; 0 until it is known. Where all get the same and one is slow, that one is
  /// what all wait for, so its rate counts for each.
  [[nodiscard]] double mbit_s() const { return mbit_s_; }

 private:
  std::size_t peers_;
  round now_;
  time_point began_;
  double trip_s_ = 0;
  std::set<worker_id> heard_;
  double mbit_s_ = 0;
};

}  // namespace poseidon
