// cpu/fusion.hpp - what a kernel may do for its neighbours: questions about the net around a layer.
#pragma once
#include "cpu/layer.hpp"

#include <optional>

namespace poseidon::cpu {

struct following_relu {
  std::size_t layer;
  float slope;
};

/// The ReLU that works in place on this layer's first top, next after it.
[[nodiscard]] std::optional<following_relu> relu_in_place_after(const layer_context& c);

}  // namespace poseidon::cpu
