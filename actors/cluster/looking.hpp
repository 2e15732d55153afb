// actors/cluster/looking.hpp - is there a run at these addresses? For who begins one where there is none.
#pragma once
#include "messages/wire/handshake.hpp"

#include <memory>
#include <string>
#include <vector>

namespace poseidon {

/// How a program dials a node that is none itself: it wants to know or to ask something.
[[nodiscard]] handshake_options asking(link_identity::purpose wants, std::string token,
                                       std::shared_ptr<const tls_context> tls);

/// Asks these nodes, one after the other, whether they train; each has three seconds to answer.
/// Returns  all of them, beginning with the one that does; empty: none does. Nodes that still wait for the first one are in no run yet.
/// Errors   handshake_error: a node answers, and refuses this one: another token, another release.
[[nodiscard]] std::vector<host_port> look_for_run(const std::vector<host_port>& nodes,
                                                  const std::string& token,
                                                  const std::shared_ptr<const tls_context>& tls);

}  // namespace poseidon
