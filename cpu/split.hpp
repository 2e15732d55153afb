// cpu/split.hpp - which tops of a Split are other names for its bottom.
#pragma once
#include "cpu/layer.hpp"

#include <optional>
#include <vector>

namespace poseidon::cpu {

struct split_sharing {
  std::vector<bool> data;           ///< by top: it has the bottom's data
  std::vector<std::size_t> diffs;   ///< tops whose diffs a layer writes
  std::optional<std::size_t> diff;  ///< the only one of these tops, where its diff is the bottom's
};

/// Data is shared unless a consumer works in place or the layouts differ; a diff, where just one top has one.
/// With options.keep_all_diffs all diffs are apart.
[[nodiscard]] split_sharing sharing_of(const replica_state& state, std::size_t layer);

}  // namespace poseidon::cpu
