// apps/web/client.hpp - asks a node's page for one text.
#pragma once
#include "actors/host_port.hpp"

#include <string>

namespace poseidon::web {

/// What a GET of `path` brings. `token`: the first line of the node's --web-token-file; empty: it has none.
/// Errors   std::runtime_error: nobody there, no answer within seconds, a refusal with its text.
[[nodiscard]] std::string fetch(const host_port& from, const std::string& path,
                                const std::string& token);

}  // namespace poseidon::web
