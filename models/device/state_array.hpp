// models/device/state_array.hpp - one array of a chunk's solver state, as an update finds it and leaves it.
#pragma once
#include <span>

namespace poseidon {

/// An update reads `before` and writes all of `after`. Where nobody may go back they are one memory.
struct state_array {
  std::span<const float> before;
  std::span<float> after;

  state_array(std::span<float> in_place) : before(in_place), after(in_place) {}
  state_array(std::span<const float> before, std::span<float> after)
      : before(before), after(after) {}
};

}  // namespace poseidon
