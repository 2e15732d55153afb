#include "actors/parameters/error_memory.hpp"

#include "models/no_memory.hpp"

#include <utility>

namespace poseidon {

void error_memory::begin(std::size_t values, std::uint64_t version, std::uint64_t former) {
  const memory_for use("what low rank has not sent of a gradient");
  copy now;
  if (!at(version).empty()) now = std::move(place(version));
  if (now.values.size() != values) now.values.assign(values, 0);
  now.version = version;
  ring_.clear();
  ring_.resize(former == 0 ? 1 : former + 2);  // with the one that is being made
  for (auto& c : ring_)
    if (&c != &place(version)) c.values.assign(values, 0);
  place(version) = std::move(now);
}

std::span<float> error_memory::make_from(std::uint64_t version) {
  const auto& from = place(version);
  auto& to = place(version + 1);
  if (&from != &to) to.values = from.values;
  to.version.reset();
  return to.values;
}

std::span<const float> error_memory::at(std::uint64_t version) const {
  if (ring_.empty()) return {};
  const auto& c = ring_[version % ring_.size()];
  return c.version == version ? std::span<const float>(c.values) : std::span<const float>();
}

}  // namespace poseidon
