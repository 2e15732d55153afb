// data/opening.hpp - how far the opening of a large source has come.
#pragma once
#include <cstdint>
#include <functional>

namespace poseidon {

/// Called now and then with the records found so far and how many there are; 0: not known yet. May be empty.
using opening_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

}  // namespace poseidon
