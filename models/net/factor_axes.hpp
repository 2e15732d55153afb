// models/net/factor_axes.hpp - along which axes of its bottom a Scale or Bias has factors of its own.
#pragma once
#include "models/net/net.hpp"

namespace poseidon {

/// Number of values over the axes before the factor's axes, over the factor's axes, and over the axes behind them.
struct factor_axes {
  std::size_t before = 1, own = 1, behind = 1;
};
/// `input`: the first bottom's shape. `factor`: the parameter's, or the second bottom's.
[[nodiscard]] factor_axes resolve_factor_axes(const net_layer& layer, const shape& input,
                                              const shape& factor);

}  // namespace poseidon
