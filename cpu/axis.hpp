// cpu/axis.hpp - a blob seen along one axis: [outer, size, inner].
#pragma once
#include "models/shape.hpp"

#include <cstddef>

namespace poseidon::cpu {

struct along_axis {
  std::size_t outer = 1, size = 1, inner = 1;
};

/// Negative axes count from the end, as in Caffe.
[[nodiscard]] inline along_axis split_at(const shape& s, int axis) {
  const std::size_t a =
      static_cast<std::size_t>(axis < 0 ? axis + static_cast<int>(s.size()) : axis);
  return {static_cast<std::size_t>(count(s, 0, a)), static_cast<std::size_t>(s.at(a)),
          static_cast<std::size_t>(count(s, a + 1, s.size()))};
}

}  // namespace poseidon::cpu
