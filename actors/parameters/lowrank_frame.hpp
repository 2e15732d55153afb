// actors/parameters/lowrank_frame.hpp - P or Q as it travels: float32, or rounded to bfloat16. What goes beside P is float32 in any case.
#pragma once
#include "messages/frames.hpp"

#include <cstddef>
#include <vector>

namespace poseidon {

/// `rounded`: the first so many values as bfloat16.
[[nodiscard]] payload pack_lowrank(std::vector<float> values, std::size_t rounded);

/// As float32. Where nothing is rounded it is the payload itself.
[[nodiscard]] payload unpack_lowrank(const payload& packed, std::size_t rounded);

}  // namespace poseidon
