#include "cpu/layers/labels.hpp"

#include <algorithm>
#include <stdexcept>

namespace poseidon::cpu {

label_rules::label_rules(const layer_context& c, std::size_t classes,
                         normalization::NormalizationMode otherwise)
    : layer_(c.layer.name), type_(c.layer.type), classes_(classes), mode_(otherwise) {
  const auto& p = c.layer.spec.loss_param();
  // The older field speaks only where the newer one is silent.
  if (p.has_normalization()) {
    mode_ = p.normalization();
  } else if (p.has_normalize()) {
    mode_ = p.normalize() ? normalization::VALID : normalization::BATCH_SIZE;
  }
  if (p.has_ignore_label()) ignored_ = p.ignore_label();
}

std::size_t label_rules::class_of(float label) const {
  const int k = label > -1 && label < 2147483648.0f ? static_cast<int>(label) : -1;
  if (k < 0 || static_cast<std::size_t>(k) >= classes_) {
    throw std::invalid_argument("layer \"" + layer_ + "\" (" + type_ + "): a label is " +
                                std::to_string(label) + ", the prediction has " +
                                std::to_string(classes_) + " classes (0 to " +
                                std::to_string(classes_ - 1) +
                                "). Do the data and the last layer's num_output belong together?");
  }
  return static_cast<std::size_t>(k);
}

float label_rules::normalizer(std::size_t outer, std::size_t inner, std::size_t valid) const {
  std::size_t n = 1;
  switch (mode_) {
    case normalization::FULL:
      n = outer * inner;
      break;
    case normalization::VALID:
      n = valid;
      break;
    case normalization::BATCH_SIZE:
      n = outer;
      break;
    default:
      break;
  }
  return std::max(1.0f, static_cast<float>(n));
}

}  // namespace poseidon::cpu
