// apps/web/open_doors.hpp
//
// Which addresses want a secret: other machines reach them, and whoever reaches a node without one takes part in its run, or looks at
// its page. The rule of every program that listens: poseidon-node, and those that libposeidon.so listens for.
#pragma once
#include "messages/wire/host_port.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poseidon::web {

/// As the user has given them, with the secrets that protect them; empty: none.
struct open_doors {
  std::optional<host_port> listen, page;
  std::vector<host_port> join;  ///< a joiner listens, too, where the node that it joins reaches it
  std::string token, page_token;
};

/// The texts name options as poseidon-node has them.
/// Errors   spec_error: other machines reach an address, and no token protects it; or a page's token is of no use.
void require_tokens(const open_doors& d);

}  // namespace poseidon::web
