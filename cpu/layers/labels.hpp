// cpu/layers/labels.hpp - the labels of one layer: those that count, and the class of each.
#pragma once
#include "cpu/layer.hpp"
#include "models/net/label_rules.hpp"

#include <string>

namespace poseidon::cpu {

/// Probabilities are taken to be at least this before their logarithm.
inline constexpr float least_probability = 1e-20f;

class class_labels {
 public:
  class_labels(const net_layer& layer, const label_rules& rules)
      : layer_(layer.name), type_(layer.type), rules_(rules) {}

  [[nodiscard]] bool is_ignored(float label) const { return rules_.is_ignored(label); }
  /// Errors   std::invalid_argument naming layer, label and the classes that there are.
  [[nodiscard]] std::size_t class_of(float label) const;
  /// For predictions [outer, classes, inner], of which `valid` have a label that counts.
  [[nodiscard]] float normalizer(std::size_t outer, std::size_t inner, std::size_t valid) const;

 private:
  std::string layer_, type_;
  label_rules rules_;
};

}  // namespace poseidon::cpu
