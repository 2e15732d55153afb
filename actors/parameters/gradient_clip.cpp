#include "actors/parameters/gradient_clip.hpp"

#include <cmath>

namespace poseidon {

std::optional<square_sum> gradient_clip::add_chunk(std::uint64_t clock,
                                                   std::span<const float> summed) {
  auto& p = clocks_[clock];
  p.own.add(summed);
  if (++p.chunks < chunks_) return std::nullopt;
  add_shard(clock, p.own);
  return p.own;
}

void gradient_clip::add_shard(std::uint64_t clock, const square_sum& squares) {
  auto& p = clocks_[clock];
  p.all.add(squares);
  ++p.shards;
}

std::optional<float> gradient_clip::take_factor(std::uint64_t clock) {
  const auto found = clocks_.find(clock);
  if (found == clocks_.end() || found->second.shards < shards_) return std::nullopt;
  // Each replica's loss is a mean over its part of the batch, so their sum is `replicas` times too large.
  const auto norm = std::sqrt(found->second.all.value()) / replicas_;
  clocks_.erase(found);
  return norm > double{limit_} ? static_cast<float>(limit_ / norm) : 1.0f;
}

}  // namespace poseidon
