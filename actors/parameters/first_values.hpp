// actors/parameters/first_values.hpp
//
// What parameters and solver state begin with: worker 0 sends all parameters to all other nodes, and what solver state there is
// to the actors that keep it. How many bytes that makes; which pieces travel is in handover.hpp.
#pragma once
#include "messages/ids.hpp"
#include "models/plan/partition.hpp"

#include <cstdint>

namespace poseidon {

/// Bytes that a node sends (worker `self` gives the first values) or receives before the first clock. `slots`: arrays of
/// solver state per chunk, 0 where there is none yet.
[[nodiscard]] std::uint64_t first_value_bytes(const partition& cut, std::size_t slots,
                                              worker_id self, bool gives, std::size_t workers);

}  // namespace poseidon
