// gpu/kernels/labels.hpp - what losses do with labels on the device: which count, what the sum is divided by, and what
// becomes of one that is no class.
#pragma once
#include "models/annotations.hpp"

#include <cstdint>

namespace poseidon::gpu {

/// What a loss's sum is divided by: all places, those with a label that counts, samples, or nothing.
enum class loss_norm { full, valid, batch, none };

struct label_rules {
  std::int32_t classes = 0;
  std::int32_t ignored = 0;
  bool ignores = false;
  loss_norm norm = loss_norm::valid;

  POSEIDON_HOST_DEVICE bool is_ignored(float label) const {
    return ignores && static_cast<std::int32_t>(label) == ignored;
  }
  /// Is it the number of a class? Not for NaN.
  POSEIDON_HOST_DEVICE bool is_class(float label) const {
    return label > -1 && label < static_cast<float>(classes);
  }
  /// Never below 1, as in Caffe: a batch whose labels are all ignored has no loss, not an infinite one.
  POSEIDON_HOST_DEVICE float normalizer(double places, double samples, double counted) const {
    const double n = norm == loss_norm::full    ? places
                     : norm == loss_norm::valid ? counted
                     : norm == loss_norm::batch ? samples
                                                : 1;
    return n < 1 ? 1.0f : static_cast<float>(n);
  }
};

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
