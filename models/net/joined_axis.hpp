// models/net/joined_axis.hpp - the axis along which a Concat joins or a Slice cuts.
#pragma once
#include "models/net/net.hpp"

namespace poseidon {

[[nodiscard]] std::size_t joined_axis_of(const net& n, const net_layer& layer);

}  // namespace poseidon
