#include "actors/parameters/solver_history.hpp"

#include <algorithm>
#include <utility>

namespace poseidon {

solver_history::solver_history(const partition& cut, std::size_t slots,
                               std::shared_ptr<device_updates> updates)
    : cut_(cut), slots_(slots), updates_(std::move(updates)) {}

void solver_history::add(std::uint32_t chunk, bool values) {
  const auto of = part(chunk);
  chunks_[chunk].assign(
      slots_, std::vector<float>(values && !on_device(of.parameter) ? of.count : 0, 0.0f));
}

parameter_part solver_history::part(std::uint32_t chunk) const {
  const auto& c = cut_.chunks[chunk];
  return {c.parameter, c.offset, c.count};
}

std::vector<std::span<float>> solver_history::of(std::uint32_t chunk) {
  auto& slots = chunks_.at(chunk);
  return {slots.begin(), slots.end()};
}

void solver_history::write(std::uint32_t chunk, std::uint32_t slot, std::size_t first,
                           std::span<const float> values) {
  auto& to = chunks_.at(chunk).at(slot);
  auto of = part(chunk);
  if (on_device(of.parameter)) {
    of.first += first;
    of.count = values.size();
    updates_->write_history(of, slot, values);
  } else if (!to.empty()) {
    std::copy(values.begin(), values.end(), to.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

std::vector<float> solver_history::read(std::uint32_t chunk, std::uint32_t slot) const {
  const auto of = part(chunk);
  if (!on_device(of.parameter)) return chunks_.at(chunk)[slot];
  std::vector<float> values(of.count);
  updates_->read_history(of, slot, values);
  return values;
}

std::shared_ptr<chunk_histories> solver_history::release() {
  for (auto& [chunk, slots] : chunks_)
    for (std::uint32_t slot = 0; on_device(part(chunk).parameter) && slot < slots.size(); ++slot)
      slots[slot] = read(chunk, slot);
  return std::make_shared<chunk_histories>(std::exchange(chunks_, {}));
}

}  // namespace poseidon
