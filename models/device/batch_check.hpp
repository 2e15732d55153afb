// models/device/batch_check.hpp - whether a batch fits the tops of its data layer.
#pragma once
#include "models/device/device.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace poseidon {

/// `values`: by top, what the net needs.
/// Errors   std::invalid_argument naming the layer, with both numbers.
void check_batch(const std::string& layer, const batch& input, std::span<const std::size_t> values);

}  // namespace poseidon
