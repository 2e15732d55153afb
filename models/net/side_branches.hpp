// models/net/side_branches.hpp - parts of a net with several losses that can be a clock ahead of the others.
#pragma once
#include "models/net/net.hpp"

#include <vector>

namespace poseidon {

/// By group of parameter_groups(n): whether its gradient of a pass can be complete before all layers have begun that pass,
/// so that some of their parameters may still be on their way. A gradient is complete when the layers behind it have run
/// forward, and so all layers before those; GoogLeNet's two side branches need not wait for what lies behind them.
[[nodiscard]] std::vector<bool> groups_that_run_ahead(const net& n);

}  // namespace poseidon
