// cpu/layers/labels.hpp - what the losses do with labels: which are ignored, what the sum is divided by.
#pragma once
#include "cpu/layer.hpp"

#include <optional>
#include <string>

namespace poseidon::cpu {

using normalization = ::caffe::LossParameter;

/// Reads loss_param; `otherwise` is the layer type's normalization where the file gives none.
class label_rules {
 public:
  label_rules(const layer_context& c, std::size_t classes,
              normalization::NormalizationMode otherwise);

  [[nodiscard]] bool is_ignored(float label) const {
    return ignored_ && static_cast<int>(label) == *ignored_;
  }
  /// Errors   std::invalid_argument naming layer, label and the classes that there are.
  [[nodiscard]] std::size_t class_of(float label) const;
  /// Never below 1, as in Caffe: a batch whose labels are all ignored has no loss, not an infinite
  /// one.
  [[nodiscard]] float normalizer(std::size_t outer, std::size_t inner, std::size_t valid) const;

 private:
  std::string layer_, type_;
  std::size_t classes_;
  std::optional<int> ignored_;
  normalization::NormalizationMode mode_;
};

}  // namespace poseidon::cpu
