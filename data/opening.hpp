// data/opening.hpp - reports the progress of opening a large source.
#pragma once
#include <cstdint>
#include <functional>

namespace poseidon {

/// Called from time to time with the number of records found so far and in all; 0: not known yet. May be empty.
using opening_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace poseidon
