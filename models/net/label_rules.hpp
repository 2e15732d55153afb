// models/net/label_rules.hpp - what losses and Accuracy do with labels: which count, and what the sum is divided by.
// Without protobuf: nvcc reads it.
#pragma once
#include "models/annotations.hpp"
#include "models/shape.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace poseidon {

struct net_layer;

/// What a loss's sum is divided by: all places, the places with a label that counts, the samples, or nothing.
enum class loss_norm { full, valid, batch, none };

struct label_rules {
  std::int32_t classes = 0;
  std::int32_t ignored = 0;
  bool ignores = false;
  loss_norm norm = loss_norm::valid;

  [[nodiscard]] POSEIDON_HOST_DEVICE bool is_ignored(float label) const {
    return ignores && static_cast<std::int32_t>(label) == ignored;
  }
  /// Is it the number of a class? Not for NaN.
  [[nodiscard]] POSEIDON_HOST_DEVICE bool is_class(float label) const {
    return label > -1 && label < static_cast<float>(classes);
  }
  /// Never below 1, as in Caffe: a batch whose labels are all ignored has no loss, not an infinite one.
  [[nodiscard]] POSEIDON_HOST_DEVICE float normalizer(double places, double samples,
                                                      double counted) const {
    const double n = norm == loss_norm::full    ? places
                     : norm == loss_norm::valid ? counted
                     : norm == loss_norm::batch ? samples
                                                : 1;
    return n < 1 ? 1.0f : static_cast<float>(n);
  }
};

/// Reads loss_param; `otherwise` is the layer type's normalization where the file gives none.
[[nodiscard]] label_rules read_label_rules(const net_layer& layer, std::size_t classes,
                                           loss_norm otherwise);
/// Reads accuracy_param.
[[nodiscard]] label_rules read_accuracy_rules(const net_layer& layer, std::size_t classes);

/// The error for a label that is no class.
[[nodiscard]] std::string wrong_label(const std::string& layer, const std::string& type,
                                      std::size_t classes, float label);

/// `places` is the number of predictions in a bottom of shape `scores`.
/// Errors   spec_error, if the labels are not one for each prediction.
void require_labels(const net_layer& layer, std::size_t places, const shape& scores,
                    const shape& labels);

}  // namespace poseidon
