// actors/gradient_sum.hpp
//
// The gradient of one layer (or of several that share parameters) on one node: the sum over its replicas and
// micro-batches, in that order of magnitude (replicas within a micro-batch first), so that the sum is the
// same whoever finishes last.
// The first of the three levels device -> node -> cluster.
#pragma once
#include "models/device.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poseidon {

class gradient_sum {
 public:
  /// `parts[r][i]` is replica r's gradient memory of the i-th pushed parameter; `writers` layers of each
  /// replica write there.
  gradient_sum(std::shared_ptr<const device> arithmetic,
               std::vector<std::vector<std::span<float>>> parts, std::uint32_t micro_batches,
               std::size_t writers = 1);

  /// Called by a replica's stream right after the backward kernel of one of its writers for micro-batch
  /// `index`: the last of all replicas and writers to come adds the replicas, in replica order. Calls for
  /// index + 1 must not come before all calls for index have returned.
  void contribute(std::uint32_t index);

  /// After the last micro-batch's last contribute(): the node's gradient of the i-th parameter.
  /// Not averaged. Stays as it is until the next pass's first contribute().
  [[nodiscard]] std::span<const float> total(std::size_t i) const;

 private:
  std::shared_ptr<const device> arithmetic_;
  std::vector<std::vector<std::span<float>>> parts_;
  std::size_t contributions_;                           // of a micro-batch
  std::vector<std::vector<float>> over_micro_batches_;  // empty when there is one micro-batch
  std::atomic<std::size_t> arrived_{0};
};

}  // namespace poseidon
