// apps/node/looking.hpp - is there a run that this node can come back to? For the node that begins the run where there is none.
#pragma once
#include "apps/node/options.hpp"
#include "messages/wire/handshake.hpp"

#include <memory>
#include <string>
#include <vector>

namespace poseidon::app {

/// How a program dials a node that is none itself: it wants to know or to ask something.
[[nodiscard]] handshake_options asking(link_identity::purpose wants, std::string token,
                                       std::shared_ptr<const tls_context> tls);

/// Asks the nodes at --join, one after the other, whether they train; each has three seconds to answer.
/// Returns  those nodes, beginning with the one that does; empty: none. Nodes that still wait for the first one are in no run yet.
/// Errors   handshake_error: a node answers, and refuses this one: another token, another release.
[[nodiscard]] std::vector<host_port> look_for_run(const node_options& o);

/// What a node is told that joins the run of these nodes: it is new to them. All that belongs to a first node is left out, but for
/// where it listens.
[[nodiscard]] node_options as_joiner(node_options o, std::vector<host_port> others);

}  // namespace poseidon::app
