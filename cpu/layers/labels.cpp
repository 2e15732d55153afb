#include "cpu/layers/labels.hpp"

#include <stdexcept>

namespace poseidon::cpu {

std::size_t class_labels::class_of(float label) const {
  if (!rules_.is_class(label))
    throw std::invalid_argument(
        wrong_label(layer_, type_, static_cast<std::size_t>(rules_.classes), label));
  return static_cast<std::size_t>(static_cast<std::int32_t>(label));
}

float class_labels::normalizer(std::size_t outer, std::size_t inner, std::size_t valid) const {
  return rules_.normalizer(static_cast<double>(outer * inner), static_cast<double>(outer),
                           static_cast<double>(valid));
}

}  // namespace poseidon::cpu
