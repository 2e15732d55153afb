// gpu/product_speed.hpp - the rate at which a GPU reconstructs gradients from factors.
#pragma once
#include <optional>

namespace poseidon::gpu {

/// Operations per second of a product as gpu_updates computes it, by the device's clock; none without such a clock.
/// Takes 45 MiB of device memory and about a millisecond.
/// Errors   gpu::error
[[nodiscard]] std::optional<double> time_products(int device);

}  // namespace poseidon::gpu
