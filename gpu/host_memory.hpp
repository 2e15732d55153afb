// gpu/host_memory.hpp - pinned memory, taken in big pieces and handed out again.
#pragma once
#include "gpu/runtime/runtime.hpp"

#include <cstddef>
#include <memory>
#include <memory_resource>

namespace poseidon::gpu {

/// Any thread. Pinning may wait for the device, so memory that is given back is kept for the next request.
[[nodiscard]] std::shared_ptr<std::pmr::memory_resource> make_host_memory();

}  // namespace poseidon::gpu
