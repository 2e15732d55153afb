#include "actors/parameters/parameter_store.hpp"

#include "actors/core/logic_bug.hpp"
#include "models/no_memory.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon {

parameter_store::parameter_store(std::span<const net_parameter> parameters, partition cut,
                                 std::size_t workers, std::uint64_t staleness,
                                 std::shared_ptr<std::pmr::memory_resource> memory,
                                 bool keeps_former)
    : cut_(std::move(cut)),
      memory_(std::move(memory)),
      copies_(std::make_shared<ring>(copies_for(keeps_former ? 2 : workers, staleness))),
      published_(parameters.size()),
      applied_(cut_.chunks.size()),
      nothing_(parameters.size()) {
  auto* const where = memory_ ? memory_.get() : std::pmr::get_default_resource();
  for (const auto& p : parameters) {
    const memory_for use("parameter", p.name);
    updated_.push_back(is_updated(p));
    for (auto& copy : *copies_) copy.emplace_back(static_cast<std::size_t>(count(p.shape)), where);
    views_.push_back(std::make_unique<parameter_values>());
    views_.back()->values.store(copies_->front().back().data());
    names_.push_back(p.name);
  }
}

parameter_store::parameter_store(const parameter_store& before, partition cut)
    : cut_(std::move(cut)),
      memory_(before.memory_),
      copies_(before.copies_),
      published_(before.views_.size()),
      applied_(cut_.chunks.size()),
      nothing_(before.views_.size()),
      names_(before.names_),
      updated_(before.updated_) {
  for (const auto p : before.parameters()) {
    views_.push_back(std::make_unique<parameter_values>());
    publish(p, before.version(p));
    published_[p].store(before.has_values(p), std::memory_order_release);
    nothing_[p].store(before.nothing_[p].load(std::memory_order_acquire),
                      std::memory_order_release);
  }
}

void parameter_store::cut_again(partition cut) {
  cut_ = std::move(cut);
  applied_ = by_id<chunk_id, std::atomic<std::uint64_t>>(cut_.chunks.size());
  set_gathering(std::nullopt);
}

std::span<float> parameter_store::at(chunk_id chunk, std::uint64_t version) {
  const auto& c = cut_.chunks[chunk];
  return values(c.parameter, version).subspan(c.offset, c.count);
}

std::span<float> parameter_store::values(parameter_id parameter, std::uint64_t version) {
  return (*copies_)[version % copies_->size()][parameter];
}

std::span<const float> parameter_store::values(parameter_id parameter,
                                               std::uint64_t version) const {
  return (*copies_)[version % copies_->size()][parameter];
}

void parameter_store::publish(parameter_id parameter, std::uint64_t version) {
  views_[parameter]->values.store(values(parameter, version).data(), std::memory_order_relaxed);
  views_[parameter]->version.store(version, std::memory_order_release);
  published_[parameter].store(true, std::memory_order_release);
}

void parameter_store::set_nothing(parameter_id parameter, std::uint64_t version, bool nothing) {
  if (nothing)
    nothing_[parameter].store(version, std::memory_order_release);
  else if (is_nothing(parameter, version))
    nothing_[parameter].store(no_version, std::memory_order_release);
}

bool parameter_store::is_nothing(parameter_id parameter, std::uint64_t version) const {
  return version > 0 && nothing_[parameter].load(std::memory_order_acquire) == version;
}

std::span<const float> parameter_store::current(parameter_id parameter) const {
  return values(parameter, version(parameter));
}

void parameter_store::go_back(std::uint64_t wanted) {
  for (const auto p : parameters()) {
    const auto have = version(p);
    if (!updated_[p] || have == wanted) continue;
    if (have < wanted || have - wanted >= copies_->size())
      throw logic_bug("parameter " + names_[p] + " goes back to another version", have, wanted);
    publish(p, wanted);
  }
}

std::uint64_t parameter_store::version(parameter_id parameter) const {
  return views_[parameter]->version.load(std::memory_order_acquire);
}

void parameter_store::set_applied(chunk_id chunk, std::uint64_t version) {
  applied_[chunk].store(version, std::memory_order_release);
}

std::uint64_t parameter_store::applied(chunk_id chunk) const {
  return applied_[chunk].load(std::memory_order_acquire);
}

void parameter_store::set_gathering(std::optional<std::uint64_t> version) {
  gathering_.store(version.value_or(no_version), std::memory_order_release);
}

std::optional<std::uint64_t> parameter_store::gathering() const {
  const auto version = gathering_.load(std::memory_order_acquire);
  return version == no_version ? std::nullopt : std::optional(version);
}

void parameter_store::come_home() {
  if (!there_) return;
  for (const auto p : parameters())
    if (there_->holds(value(p)))
      (void)there_->read_values(value(p), version(p), values(p, version(p)));
  there_.reset();
}

parameter_arrays parameter_store::copy(std::uint64_t wanted) const {
  parameter_arrays out;
  for (const auto p : parameters()) {
    const auto have = version(p);
    if (updated_[p] && (wanted > have || have - wanted >= copies_->size()))
      throw no_such_version("parameter " + names_[p] + " stands at version " +
                            std::to_string(have) + ", version " + std::to_string(wanted) +
                            " is wanted");
    const auto of = updated_[p] ? values(p, wanted) : current(p);
    const memory_for use("a copy of parameter", names_[p]);
    auto& to = out.emplace_back(of.size());
    if (there_ && there_->holds(value(p)) && there_->read_values(value(p), wanted, to)) continue;
    std::copy(of.begin(), of.end(), to.begin());
  }
  return out;
}

}  // namespace poseidon
