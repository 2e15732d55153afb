// cpu/fusion.hpp - what a kernel may do for its neighbours.
#pragma once
#include "cpu/layer.hpp"
#include "models/net/fusion.hpp"

#include <optional>

namespace poseidon::cpu {

/// As poseidon::relu_in_place_after(); none with keep_all_diffs.
[[nodiscard]] std::optional<following_relu> relu_in_place_after(const layer_context& c);

}  // namespace poseidon::cpu
