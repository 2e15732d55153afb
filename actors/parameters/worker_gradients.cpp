#include "actors/parameters/worker_gradients.hpp"

#include "actors/core/logic_bug.hpp"
#include "messages/float_payload.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

void worker_gradients::add(const gradient_arrived& m, std::size_t workers) {
  const auto [it, first] = waiting_.try_emplace(value(m.clock));
  auto& of = it->second;
  if (first) of.step = {m.from, m.step};
  of.values.resize(workers);
  of.arrived.resize(workers);
  if (of.arrived.at(m.from))
    throw logic_bug("two gradients of one worker", value(m.from), value(m.clock));
  of.arrived[m.from] = true;
  of.values[m.from] = m.values;
}

std::optional<std::pair<worker_id, step_mark>> worker_gradients::steps_otherwise(
    const gradient_arrived& m) const {
  const auto it = waiting_.find(value(m.clock));
  if (it == waiting_.end() || it->second.step.second == m.step) return std::nullopt;
  return it->second.step;
}

std::optional<worker_gradients::of_clock> worker_gradients::take(std::uint64_t clock) {
  const auto it = waiting_.find(clock);
  if (it == waiting_.end()) return std::nullopt;
  const auto& there = it->second.arrived;
  if (std::find(there.begin(), there.end(), false) != there.end()) return std::nullopt;
  of_clock gradients{std::move(it->second.values), it->second.step.second.wire};
  waiting_.erase(it);
  return gradients;
}

bool is_nothing(const worker_gradients::of_clock& gradients) {
  return std::all_of(gradients.values.begin(), gradients.values.end(),
                     [](const payload& p) { return p.bytes.empty(); });
}

std::span<const float> sum_of(const worker_gradients::of_clock& gradients, wire_format format,
                              const host_arithmetic& arithmetic, std::span<float> scratch) {
  const bool reduced = format != wire_format::float32;
  if (gradients.values.size() == 1 && !reduced) return floats(gradients.values.front());
  bool first = true;
  for (const auto& of_worker : gradients.values) {
    if (of_worker.bytes.empty()) continue;
    if (first)
      decode(format, of_worker.bytes, scratch);
    else if (reduced)
      add_decoded(format, of_worker.bytes, scratch, scratch);
    else
      arithmetic.add(scratch, floats(of_worker));
    first = false;
  }
  return scratch;
}

}  // namespace poseidon
