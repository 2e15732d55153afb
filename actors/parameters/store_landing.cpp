#include "actors/parameters/store_landing.hpp"

#include "actors/parameters/chunk_update.hpp"

#include <utility>

namespace poseidon {

store_landing::store_landing(std::shared_ptr<parameter_store> store, factor_stores factors,
                             shared_places shared,
                             by_id<parameter_id, std::shared_ptr<const gradient_source>> lent)
    : store_(std::move(store)),
      factors_(std::move(factors)),
      shared_(std::move(shared)),
      lent_(std::move(lent)) {}

std::span<std::byte> store_landing::place(chunk_id chunk, version_id version) {
  return std::as_writable_bytes(store_->at(chunk, value(version)));
}

void store_landing::add_changes(chunk_id chunk, version_id version,
                                std::span<const std::byte> bytes) {
  const auto& c = store_->cut().chunks[chunk];
  const auto before = lent_.size() == 0
                          ? std::span<const float>(store_->at(chunk, value(version) - 1))
                          : base_of(*store_, chunk, value(version) - 1, *lent_[c.parameter]);
  add_decoded(c.format, bytes, before, store_->at(chunk, value(version)));
}

void store_landing::take_rounded(chunk_id chunk, version_id version, wire_format format,
                                 std::span<const std::byte> bytes) {
  decode(format, bytes, store_->at(chunk, value(version)));
}

std::span<std::byte> store_landing::place_factors(worker_id from, const frames::factors& f) {
  return std::as_writable_bytes(factors_.at(f.layer)->piece(f.clock, from, f.rows, f.first));
}

std::span<std::byte> store_landing::place_shared(const frames::shared_state& f) {
  return shared_ ? shared_(f) : std::span<std::byte>{};
}

}  // namespace poseidon
