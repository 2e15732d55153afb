#include "actors/parameters/worker_gradients.hpp"

#include "actors/core/logic_bug.hpp"
#include "messages/float_payload.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

void worker_gradients::add(const gradient_arrived& m, std::size_t workers) {
  auto& by_worker = waiting_[value(m.clock)];
  by_worker.resize(workers);
  auto& mine = by_worker.at(m.from);
  if (mine.owner != nullptr)
    throw logic_bug("two gradients of one worker", value(m.from), value(m.clock));
  mine = m.values;
}

std::optional<worker_gradients::of_clock> worker_gradients::take(std::uint64_t clock) {
  const auto it = waiting_.find(clock);
  if (it == waiting_.end()) return std::nullopt;
  const bool complete = std::all_of(it->second.begin(), it->second.end(),
                                    [](const payload& p) { return p.owner != nullptr; });
  if (!complete) return std::nullopt;
  auto gradients = std::move(it->second);
  waiting_.erase(it);
  return gradients;
}

std::span<const float> sum_of(const worker_gradients::of_clock& gradients, wire_format format,
                              const host_arithmetic& arithmetic, std::span<float> scratch) {
  const bool reduced = format != wire_format::float32;
  if (gradients.size() == 1 && !reduced) return floats(gradients.front());
  decode(format, gradients.front().bytes, scratch);
  for (const auto& of_worker : std::span(gradients.items()).subspan(1)) {
    if (reduced)
      add_decoded(format, of_worker.bytes, scratch, scratch);
    else
      arithmetic.add(scratch, floats(of_worker));
  }
  return scratch;
}

}  // namespace poseidon
