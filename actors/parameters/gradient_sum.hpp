// actors/parameters/gradient_sum.hpp
//
// The gradient of one layer (or of several that share parameters) on one node: the sum over its replicas and
// micro-batches, replicas within a micro-batch first, so that the bits of the sum do not depend on which of them finishes
// last. The first of the three levels device -> node -> cluster.
//
// With staleness s it keeps the sums of s + 1 clocks, because that many can be under way: a layer that
// computes clock c has version c - s or a later one, which includes this node's gradient of clock c - s - 1.
#pragma once
#include "actors/parameters/gradient_source.hpp"
#include "models/device/device.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poseidon {

class gradient_sum : public gradient_source {
 public:
  /// `parts[r][i]` is replica r's gradient memory of the i-th pushed parameter, empty where the device adds that
  /// gradient to the first replica's; `writers` layers of each replica write there.
  gradient_sum(std::shared_ptr<const host_arithmetic> arithmetic,
               std::vector<std::vector<std::span<float>>> parts, std::uint32_t micro_batches,
               std::size_t writers = 1, std::uint64_t staleness = 0);

  /// Called by a replica's stream right after the backward kernel of one of its writers for a micro-batch
  /// of a clock, or by its copy_out. The last call of all replicas and writers adds the replicas, in replica order. Calls
  /// for the next pass must not begin before all calls for this one have returned.
  /// Returns  true from that last call.
  bool contribute(std::uint64_t clock, std::uint32_t micro_batch);

  /// After the last micro-batch's last contribute(): the node's gradient of the i-th parameter.
  /// Not averaged. Valid until the first contribute() of clock + s + 1.
  [[nodiscard]] std::span<const float> total(std::uint64_t clock, std::size_t i) const override;

 private:
  std::shared_ptr<const host_arithmetic> arithmetic_;
  std::vector<std::vector<std::span<float>>> parts_;
  std::size_t contributions_;  // calls per micro-batch
  // By clock modulo s + 1, then parameter. Empty with one micro-batch and s = 0: the first replica's part is the sum.
  std::vector<std::vector<std::vector<float>>> sums_;
  std::atomic<std::size_t> arrived_{0};
};

}  // namespace poseidon
