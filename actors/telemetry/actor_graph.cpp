#include "actors/telemetry/actor_graph.hpp"

namespace poseidon {

std::string_view to_string(actor_graph::edge_kind kind) {
  switch (kind) {
    case actor_graph::edge_kind::data:
      return "data";
    case actor_graph::edge_kind::grad:
      return "grad";
    case actor_graph::edge_kind::push:
      return "push";
    case actor_graph::edge_kind::pull:
      return "pull";
    case actor_graph::edge_kind::net:
      return "net";
    case actor_graph::edge_kind::control:
      return "control";
  }
  return "control";
}

}  // namespace poseidon
