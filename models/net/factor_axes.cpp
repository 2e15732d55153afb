#include "models/net/factor_axes.hpp"

namespace poseidon {

factor_axes resolve_factor_axes(const net_layer& layer, const shape& input, const shape& factor) {
  const int axis =
      layer.type == "Scale" ? layer.spec.scale_param().axis() : layer.spec.bias_param().axis();
  const auto first =
      factor.empty()
          ? 0
          : static_cast<std::size_t>(axis < 0 ? axis + static_cast<int>(input.size()) : axis);
  const auto values = [&](std::size_t from, std::size_t to) {
    return static_cast<std::size_t>(count(input, from, to));
  };
  return {values(0, first), values(first, first + factor.size()),
          values(first + factor.size(), input.size())};
}

}  // namespace poseidon
