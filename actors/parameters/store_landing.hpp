// actors/parameters/store_landing.hpp - where a peer's values land: fresh chunks in the parameter store, factors in the store of
// their layer.
#pragma once
#include "actors/links/link_binding.hpp"
#include "actors/parameters/factor_store.hpp"
#include "actors/parameters/parameter_store.hpp"

#include <memory>

namespace poseidon {

class store_landing : public landing {
 public:
  store_landing(std::shared_ptr<parameter_store> store, factor_stores factors);
  std::span<std::byte> place(chunk_id chunk, version_id version) override;
  void add_changes(chunk_id chunk, version_id version, std::span<const std::byte> bytes) override;
  std::span<std::byte> place_factors(worker_id from, const frames::factors& f) override;

 private:
  std::shared_ptr<parameter_store> store_;
  factor_stores factors_;
};

}  // namespace poseidon
