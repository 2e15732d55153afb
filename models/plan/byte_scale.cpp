#include "models/plan/byte_scale.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon {

void scale_parameters(net& n, double scale) {
  if (!(scale > 0 && scale <= 1))
    throw spec_error("byte_scale is " + std::to_string(scale) +
                     ", it has to be above 0 and at most 1: links can be made slower, not faster.");
  const auto scaled = [scale](const shape& s) -> shape {
    if (scale == 1) return s;
    return {std::max<std::int64_t>(1, std::llround(scale * static_cast<double>(count(s))))};
  };
  for (auto& p : n.parameters) {
    p.shape = scaled(p.shape);
    p.filler = {};  // a constant, 0
  }
  for (auto& layer : n.layers)
    for (auto& s : layer.parameter_shapes) s = scaled(s);
}

factor_shape scaled(factor_shape s, double scale) {
  const auto part = [scale](std::size_t axis) {
    return std::max<std::size_t>(
        1, static_cast<std::size_t>(std::llround(scale * static_cast<double>(axis))));
  };
  s.outputs = part(s.outputs);
  s.inputs = part(s.inputs);
  return s;
}

}  // namespace poseidon
