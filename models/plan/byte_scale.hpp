// models/plan/byte_scale.hpp - makes the learned blobs of a net smaller, for devices that do not compute.
#pragma once
#include "models/device/factors.hpp"
#include "models/net/net.hpp"

namespace poseidon {

/// Keeps `scale` of the values of each parameter (rounded, at least one) as one flat array, unless `scale` is 1,
/// and makes 0 their first value. On a link whose rate is scaled by the same factor an exchange then takes as long as before.
/// Errors   spec_error: a scale outside (0, 1].
void scale_parameters(net& n, double scale);

/// Factors with the same number of rows and `scale` of the values, rounded, at least one in a row of u and of v.
[[nodiscard]] factor_shape scaled(factor_shape s, double scale);

}  // namespace poseidon
