// actors/telemetry/actor_graph.hpp
//
// The actor graph as a value, in its two forms. The *types*: who can send what to whom, read from
// the accepts/sends lists that the compiler enforces. The *instances*: which actors a node runs for
// a net and what flows between them, planned from the resolved net and the partition alone, so that
// it can be drawn before anything runs; tests/cluster/graph_test.py holds it to what then runs.
// Drawing is text too: Mermaid for the types, DOT and JSON for the instances.
#pragma once
#include "actors/core/edges.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

template <class... Ms>
struct messages;  // actors/core/actor.hpp

// -- types
// ----------------------------------------------------------------------------------------------

/// What one actor class declares.
struct actor_type {
  std::string_view name;
  std::vector<std::string_view> accepts, sends;
};

template <class... Actors>
struct actor_list {};

namespace detail {
template <class... Ms>
std::vector<std::string_view> message_names(const messages<Ms...>*) {
  return {message_name<Ms>()...};
}
}  // namespace detail

/// Classes that go by one name are one actor to its neighbours: what each of them may, it may.
[[nodiscard]] std::vector<actor_type> merged(std::vector<actor_type> types);

template <class... Actors>
[[nodiscard]] std::vector<actor_type> describe(actor_list<Actors...>) {
  return merged({actor_type{
      Actors::type_name, detail::message_names(static_cast<typename Actors::accepts*>(nullptr)),
      detail::message_names(static_cast<typename Actors::sends*>(nullptr))}...});
}

/// What the names of a net's actors begin with: "" for the train net (-1), "test " for the first
/// test net, "test 1 " for the second.
[[nodiscard]] std::string name_prefix(std::int32_t test_net);

/// Mermaid text of who can send what to whom. Depends on the order of nothing but names.
[[nodiscard]] std::string to_mermaid(std::vector<actor_type> types);

/// "solver sends nobody_hears_this" for each declared message that no listed actor accepts.
[[nodiscard]] std::vector<std::string> unheard(const std::vector<actor_type>& types);

/// to_mermaid() of every actor of Poseidon (actors/every_actor.hpp).
[[nodiscard]] std::string print_type_graph();

// -- instances
// ------------------------------------------------------------------------------------------

struct actor_graph {
  enum class edge_kind { data, grad, push, pull, net, control };

  struct group {
    std::string id,
        label;  ///< a module of the net ("inception_3a"), or a part of the runtime ("links")
    std::size_t order = 0;
  };
  struct node {
    std::size_t id = 0;
    std::string name;         ///< of the running actor: "layer conv1 [0]"
    std::string kind;         ///< its class: "layer", "gradient_push", "server_shard", ...
    std::string type;         ///< layers: Caffe's type
    std::string group;        ///< id of its group
    std::string card;         ///< layers and their helpers: the layer under which they are drawn
    int replica = -1;         ///< layers, streams and data sources: whose
    std::string tops;         ///< layers: shape of the first top
    std::int64_t params = 0;  ///< layers and gradient_push: learned values
    std::uint64_t chunk_bytes = 0;  ///< server_shard: what it owns
  };
  struct edge {
    std::size_t id = 0, src = 0, dst = 0;
    std::string message;
    edge_kind kind = edge_kind::control;
    std::uint64_t bytes = 0;  ///< payload per clock; 0 where only the fact travels
  };

  std::string model;
  std::size_t nodes = 1, replicas = 1;
  std::size_t worker = 0;  ///< whose actors these are
  std::vector<group> groups;
  std::vector<node> actors;
  std::vector<edge> edges;
};

[[nodiscard]] std::string_view to_string(actor_graph::edge_kind kind);

struct cluster_size {
  std::size_t nodes = 1;
  std::size_t replicas = 1;  ///< per node
  std::size_t worker = 0;    ///< the node that is drawn; the coordinator lives on worker 0
};

/// The actors that one node of the cluster runs. `p` must be the partition of `train` over
/// size.nodes. Layers of test nets are included when the nets are given, each named "test layer
/// conv1 [0]".
[[nodiscard]] actor_graph plan_graph(const net& train, const partition& p, cluster_size size,
                                     std::span<const net> test_nets = {});

/// Grouped DOT for Graphviz: a card per layer with its in-place followers and its gradient_push, a
/// box per module, the runtime beside them. Test nets are one box each.
[[nodiscard]] std::string to_dot(const actor_graph& g);

/// {"schema":1,"run":{...},"groups":[...],"nodes":[...],"edges":[...]}, as telemetry serves it.
[[nodiscard]] std::string to_json(const actor_graph& g);

}  // namespace poseidon
