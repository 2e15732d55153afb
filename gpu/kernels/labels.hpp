// gpu/kernels/labels.hpp - how kernels of losses report a label that is no class, and how they add up losses.
#pragma once
#include "models/annotations.hpp"
#include "models/net/label_rules.hpp"

#include <cstdint>

namespace poseidon::gpu {

/// A kernel writes here that the layer cannot use a number in a bottom, and continues without that number. The host reads
/// it after the pass and throws.
struct label_fault {
  std::int32_t raised = 0;
  float value = 0;

  /// Any of several wrong numbers may be the one that stays.
  POSEIDON_HOST_DEVICE void raise(float with) {
    value = with;
    raised = 1;
  }
};

/// A sum of losses, and its number of places.
struct counted_sum {
  double sum, count;
};
/// Combines two; for reduce_rows.
struct add_counted {
  POSEIDON_HOST_DEVICE counted_sum operator()(counted_sum a, counted_sum b) const {
    return {a.sum + b.sum, a.count + b.count};
  }
};

}  // namespace poseidon::gpu
