// actors/telemetry/graph_text.hpp - an actor graph as DOT and as JSON.
#pragma once
#include "actors/telemetry/actor_graph.hpp"

#include <string>

namespace poseidon {

/// Grouped DOT for Graphviz: a card per layer with its in-place followers and its gradient_push, a
/// box per module, the runtime beside them. Test nets are one box each.
[[nodiscard]] std::string to_dot(const actor_graph& g);

/// {"schema":1,"run":{...},"groups":[...],"nodes":[...],"edges":[...]}, as telemetry serves it.
[[nodiscard]] std::string to_json(const actor_graph& g);

}  // namespace poseidon
