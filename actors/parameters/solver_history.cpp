#include "actors/parameters/solver_history.hpp"

#include "actors/core/logic_bug.hpp"
#include "models/no_memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace poseidon {

namespace {

/// 16 MiB. Of less solver state, some may still lie in a cache when the next update reads it.
constexpr std::size_t values_in_caches = std::size_t{4} << 20;

}  // namespace

solver_history::solver_history(const partition& cut, std::size_t slots, device_updates* updates,
                               std::uint64_t former)
    : cut_(cut), slots_(slots), updates_(updates), former_(former) {}

void solver_history::add(chunk_id chunk, bool values) {
  const memory_for use("the solver's history");
  const auto count = values && !on_device(chunk) ? cut_.chunks[chunk].count : 0;
  chunks_[chunk].assign(slots_, std::vector<float>(count, 0.0f));
  values_ += slots_ * count;
}

parameter_part solver_history::part(chunk_id chunk) const {
  const auto& c = cut_.chunks[chunk];
  return {value(c.parameter), c.offset, c.count};
}

std::vector<state_array> solver_history::to_update(chunk_id chunk, std::uint64_t version) {
  auto& of = pasts_[chunk];
  of.next = version + 1;
  auto& now = chunks_.at(chunk);
  if (former_ == 0) return {now.begin(), now.end()};
  auto next = room_for(chunk);
  of.kept.emplace_back(version, std::exchange(now, std::move(next)));
  const auto& before = of.kept.back().second;
  std::vector<state_array> out;
  const bool past_caches = values_ > values_in_caches;
  for (std::size_t slot = 0; slot < now.size(); ++slot)
    out.emplace_back(before[slot], now[slot], past_caches);
  return out;
}

/// The oldest version gives its memory to the next one.
solver_history::arrays solver_history::room_for(chunk_id chunk) {
  auto& kept = pasts_.at(chunk).kept;
  if (kept.size() == former_) {
    auto oldest = std::move(kept.front().second);
    kept.pop_front();
    return oldest;
  }
  const memory_for use("the solver's history of the versions before");
  arrays out;
  for (const auto& slot : chunks_.at(chunk)) out.emplace_back(slot.size());
  return out;
}

void solver_history::write(chunk_id chunk, std::uint32_t slot, std::size_t first,
                           std::span<const float> values) {
  if (const auto it = missing_.find(chunk); it != missing_.end())
    it->second -= std::min(it->second, values.size());
  auto& to = chunks_.at(chunk).at(slot);
  if (on_device(chunk)) {
    auto of = part(chunk);
    of.first += first;
    of.count = values.size();
    updates_->write_history(of, slot, values);
  } else if (!to.empty()) {
    std::copy(values.begin(), values.end(), to.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

std::vector<float> solver_history::read(chunk_id chunk, std::uint32_t slot) const {
  if (!on_device(chunk)) return chunks_.at(chunk)[slot];
  const auto of = part(chunk);
  std::vector<float> values(of.count);
  updates_->read_history(of, slot, values);
  return values;
}

std::shared_ptr<chunk_histories> solver_history::release(std::optional<version_id> version) {
  released_ = true;
  for (auto& [chunk, slots] : chunks_) {
    if (!is_complete(chunk))
      throw logic_bug("solver state of chunk " + std::to_string(value(chunk)) +
                          ", of which values have not arrived yet",
                      missing_.at(chunk), 0);
    if (version && on_device(chunk))
      throw logic_bug("solver state on a device as of a version", value(*version), 0);
    if (version) slots = take(chunk, value(*version));
    for (std::uint32_t slot = 0; on_device(chunk) && slot < slots.size(); ++slot)
      slots[slot] = read(chunk, slot);
  }
  pasts_.clear();
  return std::make_shared<chunk_histories>(std::exchange(chunks_, {}));
}

/// A chunk that has not been updated since then has the state of that version, too.
solver_history::arrays solver_history::take(chunk_id chunk, std::uint64_t version) {
  const auto it = pasts_.find(chunk);
  if (it == pasts_.end() || version >= it->second.next) return std::move(chunks_.at(chunk));
  auto& kept = it->second.kept;
  const auto at = std::find_if(kept.begin(), kept.end(),
                               [&](const auto& former) { return former.first >= version; });
  if (at == kept.end() || (at == kept.begin() && at->first > version))
    throw logic_bug("solver state of chunk " + std::to_string(value(chunk)) +
                        " as of a version that is no longer kept",
                    version, kept.empty() ? it->second.next : kept.front().first);
  return std::move(at->second);
}

}  // namespace poseidon
