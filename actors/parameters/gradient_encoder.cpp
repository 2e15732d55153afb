#include "actors/parameters/gradient_encoder.hpp"

#include "actors/core/logic_bug.hpp"

#include <limits>
#include <utility>

namespace poseidon {

gradient_encoder::gradient_encoder(const std::vector<part>& parts)
    : pool_(std::numeric_limits<std::size_t>::max()) {
  for (const auto& p : parts)
    parts_.push_back(
        {p.format, std::vector<float>(p.format == wire_format::float32 ? 0 : p.values), {}});
}

void gradient_encoder::encode(std::size_t i, std::span<const float> total) {
  if (!reduces(i)) return;
  auto& p = parts_[i];
  auto buffer = pool_.take(wire_bytes(p.format, total.size()));
  encode_with_feedback(p.format, total, p.residual, buffer.bytes);
  const std::lock_guard lock(mutex_);
  p.ready.push_back({std::move(buffer.owner), buffer.bytes});
}

payload gradient_encoder::take(std::size_t i) {
  const std::lock_guard lock(mutex_);
  auto& ready = parts_[i].ready;
  if (ready.empty()) throw logic_bug("a gradient is pushed before it is encoded", i, parts_.size());
  auto oldest = std::move(ready.front());
  ready.pop_front();
  return oldest;
}

}  // namespace poseidon
