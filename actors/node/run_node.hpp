// actors/node/run_node.hpp - a node from its start to its end, for whoever is not an actor: an app, a test.
#pragma once
#include "actors/node/node_host.hpp"

#include <functional>

namespace poseidon {

/// Called once the node runs, with the function that tells it of SIGINT or SIGTERM. May be empty.
using signal_hook = std::function<void(std::function<void(interrupted)>)>;

/// Runs one node in an actor system of its own until it has ended and all its actors with it. An actor that
/// still runs ten seconds after the end is given up on, and the process with it.
[[nodiscard]] node_result run_node(node_setup setup, const signal_hook& signals = {});

}  // namespace poseidon
