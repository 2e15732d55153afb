// apps/web/attached_site.hpp
//
// The live page of a node, served on another machine: the page's files are this program's, its requests are forwarded to
// the node's own page (live_site.hpp), and the answers back. The stream of events outlives the node: while the node
// cannot be reached the page gets the reason, and the stream continues with the node or with its next run.
//
// Event   source  {"node":"10.0.0.1:7680"}               a new stream of the node begins
//                 {"node":"10.0.0.1:7680","away":"..."}  the node cannot be reached, and why
#pragma once
#include "apps/web/client.hpp"
#include "apps/web/server.hpp"

#include <memory>

namespace poseidon::web {

/// Starts the page, at `at`, of the node at `node`. It needs the node's token, if the node has one.
/// Errors   std::invalid_argument, as server.
[[nodiscard]] std::unique_ptr<server> serve_attached(const host_port& at, page_address node);

}  // namespace poseidon::web
