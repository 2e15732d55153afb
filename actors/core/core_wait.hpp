// actors/core/core_wait.hpp - how long this thread has waited for a core; with it a busy machine is told from a slow line.
#pragma once
#include <cstdint>

namespace poseidon {

/// Microseconds, since it began, in which the calling thread could have run and had no core. 0 where the kernel does not tell.
[[nodiscard]] std::uint64_t core_wait_us();

}  // namespace poseidon
