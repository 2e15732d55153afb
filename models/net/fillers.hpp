// models/net/fillers.hpp - initial values of parameters, from (seed, parameter, index) alone.
#pragma once
#include "models/net/net.hpp"

#include <cstdint>
#include <span>

namespace poseidon {

/// Caffe's fillers: constant, uniform, gaussian (sparse too), positive_unitball, xavier, msra,
/// bilinear, with Caffe's fan-in, fan-out and variance_norm. The random numbers are Philox's (models/random.hpp).
///
/// Writes   values, in Caffe's layout.
/// Errors   spec_error for an unknown type, with the nearest one; nothing is written.
void fill(const net_parameter& p, std::uint32_t parameter_index, std::uint64_t seed,
          std::span<float> values);

}  // namespace poseidon
