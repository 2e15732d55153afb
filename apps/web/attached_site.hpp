// apps/web/attached_site.hpp
//
// The live page of a node, served on another machine: the page's files are this program's, what it asks for is passed
// on to the node's own page (live_site.hpp) and back. The stream of events outlives the node: while it cannot be had,
// the page hears why, and it goes on when the node, or its next run, is there again.
//
// Event   source  {"node":"10.0.0.1:7680"}               everything begins anew
//                 {"node":"10.0.0.1:7680","away":"..."}  it cannot be asked, and why
#pragma once
#include "apps/web/client.hpp"
#include "apps/web/server.hpp"

#include <memory>

namespace poseidon::web {

/// Starts the page, at `at`, of the node at `node`. Whoever looks has to know the node's token, if it has one.
/// Errors   std::invalid_argument, as server.
[[nodiscard]] std::unique_ptr<server> serve_attached(const host_port& at, page_address node);

}  // namespace poseidon::web
