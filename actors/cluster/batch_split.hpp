// actors/cluster/batch_split.hpp
//
// What the leader hears of all nodes before it splits the batch: how many replicas each has and how fast it trains; and, when
// the nodes are ready, into how many replicas each has split its part. The leader decides by these; arithmetic on shares is
// data/batch_shares.hpp.
#pragma once
#include "messages/frames.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poseidon {

class batch_split {
 public:
  /// A node's answer to time_net; the leader's own, too. Returns  how many nodes have answered.
  std::size_t timed(seat_id node, const frames::net_timed& speed);
  /// By worker, once all have answered.
  [[nodiscard]] std::vector<std::uint32_t> replicas() const;
  [[nodiscard]] std::vector<double> samples_s() const;

  /// A node is ready, with so many replicas.
  void ready(seat_id node, std::uint32_t replicas) { ready_[node] = replicas; }
  /// With equal shares a gradient is the mean over all replicas only if every node has the same number. The first node that
  /// has another number than `own`, and that number.
  [[nodiscard]] std::optional<std::pair<seat_id, std::uint32_t>> other_number(
      std::uint32_t own) const;

 private:
  std::map<seat_id, frames::net_timed> timed_;
  std::map<seat_id, std::uint32_t> ready_;
};

}  // namespace poseidon
