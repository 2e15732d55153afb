#include "actors/parameter_store.hpp"

#include <stdexcept>

namespace poseidon {

parameter_store::parameter_store(const net& n, partition cut, std::size_t workers)
    : cut_(std::move(cut)),
      buffers_(workers > 1 ? 2 : 1),
      current_(n.parameters.size()),
      applied_(cut_.chunks.size()) {
  for (std::size_t p = 0; p < n.parameters.size(); ++p) updated_.push_back(is_updated(n, p));
  for (const auto& p : n.parameters) {
    for (auto& half : buffers_) half.emplace_back(static_cast<std::size_t>(count(p.shape)));
    views_.push_back(std::make_unique<parameter_values>());
    views_.back()->values.store(buffers_[0].back().data());
    names_.push_back(p.name);
  }
}

std::size_t parameter_store::other_half(std::size_t parameter) const {
  return buffers_.size() - 1 - current_[parameter];
}

std::span<float> parameter_store::landing(std::size_t chunk) {
  const auto& c = cut_.chunks[chunk];
  return landing_of(c.parameter).subspan(c.offset, c.count);
}

std::span<float> parameter_store::landing_of(std::size_t parameter) {
  return buffers_[other_half(parameter)][parameter];
}

void parameter_store::publish(std::size_t parameter, std::uint64_t version) {
  current_[parameter].store(other_half(parameter));
  views_[parameter]->values.store(buffers_[current_[parameter]][parameter].data(),
                                  std::memory_order_relaxed);
  views_[parameter]->version.store(version, std::memory_order_release);
}

std::span<const float> parameter_store::current(std::size_t parameter) const {
  return buffers_[current_[parameter]][parameter];
}

std::span<const float> parameter_store::current_chunk(std::size_t chunk) const {
  const auto& c = cut_.chunks[chunk];
  return current(c.parameter).subspan(c.offset, c.count);
}

std::uint64_t parameter_store::version(std::size_t parameter) const {
  return views_[parameter]->version.load(std::memory_order_acquire);
}

void parameter_store::set_applied(std::size_t chunk, std::uint64_t version) {
  applied_[chunk].store(version, std::memory_order_release);
}

std::uint64_t parameter_store::applied(std::size_t chunk) const {
  return applied_[chunk].load(std::memory_order_acquire);
}

parameter_arrays parameter_store::copy(std::uint64_t wanted) const {
  parameter_arrays out;
  for (std::size_t p = 0; p < current_.size(); ++p) {
    const auto have = updated_[p] ? version(p) : wanted;
    if (have != wanted && (have != wanted + 1 || buffers_.size() == 1))
      throw std::runtime_error("parameter " + names_[p] + " stands at version " +
                               std::to_string(have) + ", version " + std::to_string(wanted) +
                               " is wanted");
    out.push_back(buffers_[have == wanted ? current_[p].load() : other_half(p)][p]);
  }
  return out;
}

}  // namespace poseidon
