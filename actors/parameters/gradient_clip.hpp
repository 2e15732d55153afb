// actors/parameters/gradient_clip.hpp
//
// One shard's part in clip_gradients: the norm over all learned parameters needs the squares of every shard,
// so no chunk of a clock can be updated before all of them are known. No mailbox here: server_shard has one
// gradient_clip.
//
// Source   Pascanu, Mikolov & Bengio (2013); Caffe's norm is that of the sum over iter_size, see
//          docs/decisions/008.
#pragma once
#include "models/device/square_sum.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace poseidon {

class gradient_clip {
 public:
  /// `limit`: clip_gradients. `replicas`: how many share a node's batch. `chunks`: learned chunks of this
  /// shard. `shards`: how many shards have learned chunks, this one included if it has any.
  gradient_clip(float limit, std::uint32_t replicas, std::size_t chunks, std::size_t shards)
      : limit_(limit), replicas_(replicas), chunks_(chunks), shards_(shards) {}

  /// A chunk of this shard has the gradients of all workers; `summed` is their sum.
  /// Returns  the squares of this shard, for the other shards, after the last chunk of that clock.
  std::optional<square_sum> add_chunk(std::uint64_t clock, std::span<const float> summed);

  /// Another shard's squares of a clock.
  void add_shard(std::uint64_t clock, const square_sum& squares);

  /// The factor for every gradient of the clock, 1 or less, once the squares of all shards are known.
  /// Given once per clock, which is forgotten then.
  [[nodiscard]] std::optional<float> take_factor(std::uint64_t clock);

 private:
  struct progress {
    std::size_t chunks = 0, shards = 0;
    square_sum own, all;
  };
  float limit_;
  std::uint32_t replicas_;
  std::size_t chunks_, shards_;
  std::map<std::uint64_t, progress> clocks_;
};

}  // namespace poseidon
