// gpu/product_speed.hpp - how fast a GPU makes gradients of factors.
#pragma once
#include <optional>

namespace poseidon::gpu {

/// Operations a second of a product as gpu_updates makes them, by the device's clock; none: that clock stands still.
/// Takes 45 MiB of its memory, and about a millisecond of a GPU.
/// Errors   gpu::error
[[nodiscard]] std::optional<double> time_products(int device);

}  // namespace poseidon::gpu
