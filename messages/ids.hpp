// messages/ids.hpp - the numbers by which actors speak of layers, chunks, clocks and each other.
#pragma once
#include "models/ids.hpp"

#include <cstdint>

namespace poseidon {

enum class replica_id : std::uint32_t {};  ///< one copy of the net within a node
enum class clock_id : std::uint64_t {};    ///< an iteration; the first is the solver state's `iter`
/// How many updates a parameter has seen: version c is what clock c computes with at staleness 0.
enum class version_id : std::uint64_t {};

}  // namespace poseidon
