// actors/telemetry/actor_graph.hpp - the actors of one node and what flows between them, as a value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

struct actor_graph {
  enum class edge_kind { data, grad, push, pull, net, control };

  struct group {
    std::string id, label;  ///< a module of the net ("inception_3a") or of the runtime ("links")
    std::size_t order = 0;
  };
  struct node {
    std::size_t id = 0;
    std::string name;         ///< as the running actor bears it: "layer conv1 [0]"
    std::string kind;         ///< its class: "layer", "gradient_push", "server_shard", ...
    std::string type;         ///< layers: Caffe's type
    std::string group;        ///< id of its group
    std::string card;         ///< layers and their helpers: the layer under which they are drawn
    int replica = -1;         ///< layers, streams and data sources: their replica
    std::string tops;         ///< layers: shape of the first top
    std::int64_t params = 0;  ///< layers and gradient_push: learned values
    std::uint64_t chunk_bytes = 0;  ///< server_shard: the chunks that it owns
  };
  struct edge {
    std::size_t id = 0, src = 0, dst = 0;
    std::string message;
    edge_kind kind = edge_kind::control;
    std::uint64_t bytes = 0;  ///< payload per clock; 0 for messages without payload
  };

  std::string model;
  std::size_t nodes = 1, replicas = 1;
  std::size_t worker = 0;  ///< the worker that runs these actors
  std::vector<group> groups;
  std::vector<node> actors;
  std::vector<edge> edges;
};

[[nodiscard]] std::string_view to_string(actor_graph::edge_kind kind);

}  // namespace poseidon
