#include "actors/parameters/solver_history.hpp"

#include "models/no_memory.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

solver_history::solver_history(const partition& cut, std::size_t slots,
                               std::shared_ptr<device_updates> updates)
    : cut_(cut), slots_(slots), updates_(std::move(updates)) {}

void solver_history::add(chunk_id chunk, bool values) {
  const memory_for use("the solver's history");
  const auto count = values && !on_device(chunk) ? cut_.chunks[chunk].count : 0;
  chunks_[chunk].assign(slots_, std::vector<float>(count, 0.0f));
}

parameter_part solver_history::part(chunk_id chunk) const {
  const auto& c = cut_.chunks[chunk];
  return {value(c.parameter), c.offset, c.count};
}

std::vector<std::span<float>> solver_history::of(chunk_id chunk) {
  auto& slots = chunks_.at(chunk);
  return {slots.begin(), slots.end()};
}

void solver_history::write(chunk_id chunk, std::uint32_t slot, std::size_t first,
                           std::span<const float> values) {
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

std::shared_ptr<chunk_histories> solver_history::release() {
  for (auto& [chunk, slots] : chunks_)
    for (std::uint32_t slot = 0; on_device(chunk) && slot < slots.size(); ++slot)
      slots[slot] = read(chunk, slot);
  return std::make_shared<chunk_histories>(std::exchange(chunks_, {}));
}

}  // namespace poseidon
