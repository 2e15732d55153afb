// apps/node/looking.hpp - what a node is told that comes back to a run, where it would begin one if there were none.
#pragma once
#include "apps/node/options.hpp"

#include <vector>

namespace poseidon::app {

/// What a node is told that joins the run of these nodes: it is new to them. All that belongs to a first node is left out, but for
/// where it listens.
[[nodiscard]] node_options as_joiner(node_options o, std::vector<host_port> others);

}  // namespace poseidon::app
