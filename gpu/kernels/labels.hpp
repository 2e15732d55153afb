// gpu/kernels/labels.hpp - how kernels of losses report a label that is no class, and how they add up losses.
#pragma once
#include "models/annotations.hpp"
#include "models/net/label_rules.hpp"

#include <cstdint>

namespace poseidon::gpu {

/// Where a kernel writes that a number in a bottom is none that the layer can use. The host looks at it when the pass
/// has been executed and then speaks; until then the kernel goes on without that number.
struct label_fault {
  std::int32_t raised = 0;
  float value = 0;

  /// One of the numbers that are wrong, whichever.
  POSEIDON_HOST_DEVICE void raise(float with) {
    value = with;
    raised = 1;
  }
};

/// A sum of losses and the places that it comes from.
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
