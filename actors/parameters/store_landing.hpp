// actors/parameters/store_landing.hpp - where a peer's values land: fresh chunks in the parameter store, factors in the store of
// their layer, shared state in the program's memory.
#pragma once
#include "actors/links/link_binding.hpp"
#include "actors/parameters/factor_store.hpp"
#include "actors/parameters/gradient_source.hpp"
#include "actors/parameters/parameter_store.hpp"

#include <functional>
#include <memory>
#include <span>

namespace poseidon {

class store_landing : public landing {
 public:
  /// Where bytes of an entry that programs share lie in this node's program; empty: it takes none.
  using shared_places = std::function<std::span<std::byte>(const frames::shared_state&)>;
  /// `lent`: where a program's steps begin, where shards make them; empty: at the version before.
  store_landing(std::shared_ptr<parameter_store> store, factor_stores factors,
                shared_places shared = {},
                by_id<parameter_id, std::shared_ptr<const gradient_source>> lent = {});
  std::span<std::byte> place(chunk_id chunk, version_id version) override;
  void add_changes(chunk_id chunk, version_id version, std::span<const std::byte> bytes) override;
  void take_rounded(chunk_id chunk, version_id version, wire_format format,
                    std::span<const std::byte> bytes) override;
  std::span<std::byte> place_factors(worker_id from, const frames::factors& f) override;
  std::span<std::byte> place_shared(const frames::shared_state& f) override;

 private:
  std::shared_ptr<parameter_store> store_;
  factor_stores factors_;
  shared_places shared_;
  by_id<parameter_id, std::shared_ptr<const gradient_source>> lent_;
};

}  // namespace poseidon
