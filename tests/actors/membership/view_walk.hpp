// tests/actors/membership/view_walk.hpp
//
// One random schedule of the model cluster: five members and two newcomers; posts that are lost, doubled and late; crashes,
// sleep, cuts of one or both directions that heal; joins and leaves that are planned, and losses in the midst of them. After
// that the run is fair: the network is whole, members propose by rank, and if a quorum lives, it has to train again. One of the
// five may be a witness.
#pragma once
#include "tests/actors/membership/view_model.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace poseidon::view_model {

struct walk_result {
  std::string violated;  ///< empty: nothing
  std::size_t steps = 0;
  std::uint64_t epoch = 0;            ///< the last that has begun
  bool joined = false, left = false;  ///< a planned change has been made
  bool had_to_end = false;            ///< a quorum lived, so Ends has been asked of this run
};

/// Each seed is another schedule, and always the same one. `witnesses`: of the five.
[[nodiscard]] walk_result walk(std::uint64_t seed, mutation broken, seat_mask witnesses = 0);

}  // namespace poseidon::view_model
