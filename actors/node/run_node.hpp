// actors/node/run_node.hpp - a node from its start to its end, for whoever is not an actor: an app, a test.
#pragma once
#include "actors/node/node_host.hpp"

#include <functional>

namespace poseidon {

/// Called once the node runs, with the function that tells it of SIGINT or SIGTERM. May be empty.
using signal_hook = std::function<void(std::function<void(interrupted)>)>;

/// How long a node's actors may take to end once the run is over: ten seconds more than a link may wait for a peer that hears
/// nothing and takes nothing, which is no fault of this node.
[[nodiscard]] std::chrono::milliseconds patience_at_end(const node_setup& setup);

/// Runs one node in an actor system of its own until it has ended and all its actors with it. Where an actor still runs when
/// `patience_at_end` is over, the node gives up on it, and the process ends.
[[nodiscard]] node_result run_node(node_setup setup, const signal_hook& signals = {});

}  // namespace poseidon
