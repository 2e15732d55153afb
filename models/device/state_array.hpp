// models/device/state_array.hpp - one array of a chunk's solver state, as an update finds it and leaves it.
#pragma once
#include <span>

namespace poseidon {

/// An update reads `before` and writes all of `after`. Where nobody may go back they are one memory.
struct state_array {
  std::span<const float> before;
  std::span<float> after;
  /// More than caches hold is used before `after` is read. So it is written past them, which takes less time: what lay there is not
  /// read first.
  bool past_caches = false;

  state_array(std::span<float> in_place) : before(in_place), after(in_place) {}
  state_array(std::span<const float> before, std::span<float> after, bool past_caches = false)
      : before(before), after(after), past_caches(past_caches) {}
};

}  // namespace poseidon
