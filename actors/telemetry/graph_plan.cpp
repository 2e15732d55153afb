#include "actors/telemetry/graph_plan.hpp"

#include "actors/core/actor_names.hpp"
#include "models/net/parameter_groups.hpp"
#include "models/net/side_branches.hpp"
#include "models/plan/keepers.hpp"
#include "models/plan/lowrank_routes.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace poseidon {

namespace {

using kind = actor_graph::edge_kind;

/// Adds nodes and edges to a graph; knows the names.
class planner {
 public:
  planner(const net& train, const partition& p, cluster_size size)
      : train_(train), partition_(p), size_(size) {
    if (size.nodes == 0 || size.replicas == 0 || size.worker >= size.nodes)
      throw std::invalid_argument("plan_graph: worker " + std::to_string(size.worker) + " of " +
                                  std::to_string(size.nodes) + " nodes with " +
                                  std::to_string(size.replicas) + " replicas each: there is none");
    if (p.by_parameter.size() != train.parameters.size() || p.by_owner.size() != size.nodes)
      throw std::invalid_argument(
          "plan_graph: the partition is of " + std::to_string(p.by_parameter.size()) +
          " parameters over " + std::to_string(p.by_owner.size()) + " shards, the net has " +
          std::to_string(train.parameters.size()) + " and the cluster " +
          std::to_string(size.nodes) + " nodes: make_partition(net, nodes)");
    g_.model = train.name;
    g_.nodes = size.nodes;
    g_.replicas = size.replicas;
    g_.worker = size.worker;
  }

  actor_graph run(std::span<const net> test_nets) {
    runtime();
    for (std::uint32_t r = 0; r < size_.replicas; ++r) pass(train_, r, -1);
    for (std::size_t t = 0; t < test_nets.size(); ++t) {
      const auto test_net = static_cast<std::int32_t>(t);
      group(group_of(test_net), "test net " + std::to_string(t));
      for (std::uint32_t r = 0; r < size_.replicas; ++r) pass(test_nets[t], r, test_net);
    }
    gradients(test_nets);
    return std::move(g_);
  }

 private:
  // The actors that exist once per node, and their edges.
  void runtime() {
    group("control", "control");
    group("streams", "streams");
    group("shards", "shards");
    group("links", "links");
    node_ = add("node", "node", "control");
    solver_ = add("solver", "solver", "control");
    edge(node_, solver_, "begin_training", kind::control);
    edge(solver_, node_, "training_done", kind::control);
    for (std::uint32_t r = 0; r < size_.replicas; ++r) {
      streams_.push_back(add(replica_name("stream compute", r), "stream", "streams"));
      g_.actors[streams_.back()].replica = static_cast<int>(r);
      edge(streams_.back(), solver_, "nonfinite_found", kind::control);
    }
    shard_ = add("server_shard", "server_shard", "shards");
    for (const auto c : partition_.by_owner[as_id<worker_id>(size_.worker)])
      g_.actors[shard_].chunk_bytes += partition_.chunks[c].count * sizeof(float);
    checkpointer_ = add("checkpointer", "checkpointer", "control");
    edge(solver_, checkpointer_, "write_snapshot", kind::control);
    edge(checkpointer_, solver_, "snapshot_copied", kind::control);
    edge(checkpointer_, shard_, "copy_history", kind::control);
    edge(shard_, checkpointer_, "history_arrived", kind::control);
    add("telemetry", "telemetry", "control");
    if (size_.nodes == 1) return;

    if (size_.worker == 0) {
      selector_ = add("protocol_selector", "protocol_selector", "control");
      for (const auto* message : {"choose_routes", "measure_links", "probe_answered"})
        edge(node_, selector_, message, kind::control);
      edge(selector_, node_, "routes_chosen", kind::control);
    }
    const auto acceptor = add("link_acceptor", "link_acceptor", "links");
    edge(acceptor, node_, "link_accepted", kind::control);
    for (std::size_t w = 0; w < size_.nodes; ++w) {
      links_.push_back(no_actor);
      receivers_.push_back(no_actor);
      if (w == size_.worker) continue;
      const auto name = link_name(static_cast<std::uint32_t>(w));
      links_[w] = add(name, "network_link", "links");
      receivers_[w] = add(receiver_name(name), "network_link", "links");
      edge(node_, links_[w], "send_frame", kind::control);
      if (size_.worker == 0) edge(selector_, links_[w], "send_frame", kind::control);
      edge(solver_, links_[w], "send_frame", kind::control);
      edge(links_[w], node_, "link_bound", kind::control);
      edge(links_[w], node_, "link_lost", kind::control);
      edge(receivers_[w], node_, "control_arrived", kind::control);
      edge(receivers_[w], links_[w], "receiver_ended", kind::control);
    }
    keeper();
  }

  // Where this node keeps copies of others' solver state.
  void keeper() {
    by_id<worker_id, std::uint64_t> bytes_of(size_.nodes, 0);
    for (const auto c : partition_.chunks.ids())
      if (keeps(c))
        bytes_of[partition_.chunks[c].owner] += partition_.chunks[c].count * sizeof(float);
    for (std::size_t w = 0; w < size_.nodes; ++w) {
      const auto bytes = bytes_of[as_id<worker_id>(w)];
      if (bytes == 0) continue;
      if (keeper_ == no_actor) keeper_ = add("state_keeper", "state_keeper", "shards");
      edge(receivers_[w], keeper_, "sum_arrived", kind::net, bytes);
    }
  }
  [[nodiscard]] bool keeps(chunk_id c) const {
    return is_keeper(partition_, c, as_id<worker_id>(size_.worker));
  }

  // One replica's layers with their data sources: the net's own dataflow.
  void pass(const net& n, std::uint32_t replica, std::int32_t test_net) {
    const auto prefix = name_prefix(test_net);
    std::vector<std::size_t> of_layer;
    std::vector<std::string> card_of(n.layers.size());
    std::map<std::size_t, std::size_t> writer;  // blob -> layer that last wrote it
    for (std::size_t l = 0; l < n.layers.size(); ++l) {
      const auto& layer = n.layers[l];
      const bool in_place =
          !layer.bottoms.empty() && !layer.tops.empty() && layer.bottoms[0] == layer.tops[0];
      const bool follows =
          (in_place || layer.type == "Split") && writer.count(layer.bottoms[0]) != 0;
      card_of[l] = follows ? card_of[writer.at(layer.bottoms[0])] : prefix + layer.name;
      const auto me = add(layer_name(layer.name, replica, test_net), "layer",
                          test_net < 0 ? module_of(layer.name) : group_of(test_net));
      of_layer.push_back(me);
      auto& a = g_.actors[me];
      a.type = layer.type;
      a.replica = static_cast<int>(replica);
      a.card = card_of[l];
      if (!layer.tops.empty()) a.tops = to_string(n.blobs[layer.tops[0]].shape);
      for (const auto p : layer.parameters) a.params += count(n.parameters[p].shape);
      edge(me, streams_[replica], "issue_work", kind::control);
      if (n.phase == ::caffe::TRAIN && !layer.parameters.empty())
        edge(streams_[replica], me, "work_done", kind::control);
      source(layer, me, replica, test_net, card_of[l]);
      for (std::size_t b = 0; b < layer.bottoms.size(); ++b) {
        const auto from = writer.find(layer.bottoms[b]);
        if (from == writer.end()) continue;
        const auto bytes =
            static_cast<std::uint64_t>(count(n.blobs[layer.bottoms[b]].shape)) * sizeof(float);
        edge(of_layer[from->second], me, "bottom_ready", kind::data, bytes);
        const bool diff =
            n.phase == ::caffe::TRAIN && b < layer.propagate_down.size() && layer.propagate_down[b];
        edge(me, of_layer[from->second], "top_diff_ready", diff ? kind::grad : kind::control,
             diff ? bytes : 0);
      }
      for (const auto t : layer.tops) writer[t] = l;
    }
    for (std::size_t l = 0; l < n.layers.size(); ++l) {
      const auto from = starter(n, l);
      if (!from) continue;
      edge(of_layer[*from], of_layer[l], "bottom_ready", kind::control);
      edge(of_layer[l], of_layer[*from], "top_diff_ready", kind::control);
    }
    for (const auto blob : n.outputs) {
      const auto from = writer.find(blob);
      if (from == writer.end()) continue;
      edge(streams_[replica], of_layer[from->second], "work_done", kind::control);
      edge(of_layer[from->second], solver_, "outputs_ready", kind::control);
    }
    (test_net < 0 ? layers_ : test_layers_).push_back(std::move(of_layer));
  }

  void source(const net_layer& layer, std::size_t me, std::uint32_t replica, std::int32_t test_net,
              const std::string& card) {
    if (!is_source(layer)) return;
    const auto s =
        add(source_name(layer.name, replica, test_net), "data_source", g_.actors[me].group);
    g_.actors[s].card = card;
    g_.actors[s].replica = static_cast<int>(replica);
    edge(solver_, s, "start_pass", kind::control);
    edge(s, me, "batch_ready", kind::data);
    edge(me, solver_, "pass_issued", kind::control);
  }

  // gradient_push, factor_broadcast or lowrank_exchange per group of layers that share parameters, in most nets one layer: from the
  // layers out to the shards or the other nodes, and back.
  void gradients(std::span<const net> test_nets) {
    const auto ahead = size_.nodes > 1 ? groups_that_run_ahead(train_) : std::vector<bool>{};
    std::size_t g = 0;
    for (const auto& group : parameter_groups(train_)) {
      const auto kind_of_actor = actor_for(group);
      const auto me = exchange(group, kind_of_actor, test_nets);
      if (kind_of_actor == "factor_broadcast")
        broadcast(group, me);
      else if (kind_of_actor == "lowrank_exchange")
        lowrank(group, me);
      else
        push(group, me);
      if (!group.learned.empty()) edge(me, solver_, "layer_fresh", kind::control);
      if (!ahead.empty() && ahead[g++]) edge(solver_, me, "parameters_whole", kind::control);
    }
    // Gradients of the other workers to this node's shard, and fresh parameters back.
    for (std::size_t w = 0; w < links_.size(); ++w) {
      if (links_[w] == no_actor || g_.actors[shard_].chunk_bytes == 0) continue;
      edge(receivers_[w], shard_, "gradient_arrived", kind::net, g_.actors[shard_].chunk_bytes);
      edge(shard_, links_[w], "send_frame", kind::net, g_.actors[shard_].chunk_bytes);
    }
  }

  [[nodiscard]] std::string actor_for(const parameter_group& group) const {
    if (group.learned.empty() || !on_every_node(partition_, group.learned.front()))
      return "gradient_push";
    return rank_of(partition_, group.learned.front()) > 0 ? "lowrank_exchange" : "factor_broadcast";
  }

  // The actor, and its edges to and from layers.
  std::size_t exchange(const parameter_group& group, const std::string& kind_of_actor,
                       std::span<const net> test_nets) {
    const auto first = group.layers.front();
    const bool factors = kind_of_actor == "factor_broadcast";
    const auto me = add(exchange_name(kind_of_actor, train_.layers[first].name), kind_of_actor,
                        g_.actors[layers_[0][first]].group);
    g_.actors[me].card = g_.actors[layers_[0][first]].card;
    std::uint64_t bytes = 0;
    for (const auto p : group.frozen)
      g_.actors[me].params += count(train_.parameters[value(p)].shape);
    for (const auto p : group.learned) {
      g_.actors[me].params += count(train_.parameters[value(p)].shape);
      for (const auto c : partition_.by_parameter[p])
        bytes += partition_.chunks[c].count * sizeof(float);
    }
    const auto grad_bytes = factors ? factors_of(train_, first).values() * sizeof(float) : bytes;
    for (std::size_t r = 0; r < size_.replicas; ++r) {
      for (const auto l : group.writers)
        edge(layers_[r][l], me, "backward_done", kind::grad, grad_bytes);
      for (const auto l : group.layers)
        edge(me, layers_[r][l], "parameters_fresh", kind::pull, bytes);
    }
    // Layers of test nets use the values of the training layers with the same names.
    for (std::size_t t = 0; t < test_layers_.size(); ++t) {
      const auto& used = test_nets[t / size_.replicas].layers;
      for (std::size_t l = 0; l < used.size(); ++l)
        if (!used[l].parameters.empty() && is_in(group, used[l].name))
          edge(me, test_layers_[t][l], "parameters_fresh", kind::pull);
    }
    return me;
  }

  void push(const parameter_group& group, std::size_t me) {
    by_id<worker_id, std::uint64_t> bytes_to(size_.nodes, 0);
    for (const auto p : group.learned)
      for (const auto c : partition_.by_parameter[p])
        bytes_to[partition_.chunks[c].owner] += partition_.chunks[c].count * sizeof(float);
    std::uint64_t of_keeper = 0;
    for (std::size_t w = 0; w < size_.nodes; ++w) {
      const auto bytes = bytes_to[as_id<worker_id>(w)];
      if (bytes == 0) continue;
      if (w == size_.worker) {
        edge(me, shard_, "install_chunk", kind::control);
        edge(me, shard_, "gradient_arrived", kind::push, bytes);
        edge(shard_, me, "chunk_fresh", kind::pull, bytes);
      } else {
        edge(me, links_[w], "send_frame", kind::push, bytes);
        // What this node keeps comes as sums, from which the keeper makes the fresh values.
        const auto kept = kept_of(group, as_id<worker_id>(w));
        of_keeper += kept;
        if (bytes > kept) edge(receivers_[w], me, "chunk_landed", kind::pull, bytes - kept);
      }
    }
    if (of_keeper > 0) edge(keeper_, me, "chunk_fresh", kind::pull, of_keeper);
  }

  /// Bytes of the group's chunks that this worker owns and this node keeps.
  [[nodiscard]] std::uint64_t kept_of(const parameter_group& group, worker_id owner) const {
    std::uint64_t bytes = 0;
    for (const auto p : group.learned)
      for (const auto c : partition_.by_parameter[p])
        if (partition_.chunks[c].owner == owner && keeps(c))
          bytes += partition_.chunks[c].count * sizeof(float);
    return bytes;
  }

  void broadcast(const parameter_group& group, std::size_t me) {
    const auto bytes =
        size_.replicas * factors_of(train_, group.layers.front()).values() * sizeof(float);
    for (std::size_t w = 0; w < size_.nodes; ++w) {
      if (w == size_.worker) continue;
      edge(me, links_[w], "send_frame", kind::push, bytes);
      edge(receivers_[w], me, "factors_landed", kind::pull, bytes);
    }
    edge(checkpointer_, me, "copy_history", kind::control);
    edge(me, checkpointer_, "history_arrived", kind::control);
  }

  // To the owner of the sums, or from there to all.
  void lowrank(const parameter_group& group, std::size_t me) {
    const auto layer = group.layers.front();
    const auto by = route_of(partition_.routes, group.learned.front());
    const auto owner = lowrank_owners(train_, partition_.routes, size_.nodes)[layer];
    const auto bytes = lowrank_bytes_of(train_, layer, by).both();
    for (std::size_t w = 0; w < size_.nodes; ++w) {
      if (w == size_.worker || (value(owner) != size_.worker && value(owner) != w)) continue;
      edge(me, links_[w], "send_frame", kind::push, bytes);
      edge(receivers_[w], me, "lowrank_landed", kind::pull, bytes);
    }
    edge(checkpointer_, me, "copy_history", kind::control);
    edge(me, checkpointer_, "history_arrived", kind::control);
  }

  [[nodiscard]] bool is_in(const parameter_group& group, const std::string& layer) const {
    return std::any_of(group.layers.begin(), group.layers.end(),
                       [&](std::size_t l) { return train_.layers[l].name == layer; });
  }

  /// "test 1" for the second test net.
  static std::string group_of(std::int32_t test_net) {
    const auto prefix = name_prefix(test_net);
    return prefix.substr(0, prefix.size() - 1);
  }

  /// "inception_3a" of "inception_3a/1x1"; a layer without a prefix belongs to no module.
  std::string module_of(const std::string& layer) {
    const auto slash = layer.find('/');
    if (slash == std::string::npos) return "net";
    group(layer.substr(0, slash), layer.substr(0, slash));
    return layer.substr(0, slash);
  }

  void group(const std::string& id, const std::string& label) {
    const bool known = std::any_of(g_.groups.begin(), g_.groups.end(),
                                   [&](const actor_graph::group& had) { return had.id == id; });
    if (!known) g_.groups.push_back({id, label, g_.groups.size()});
  }

  std::size_t add(std::string name, std::string of_kind, std::string in_group) {
    if (in_group == "net") group("net", "net");
    actor_graph::node a;
    a.id = g_.actors.size();
    a.name = std::move(name);
    a.kind = std::move(of_kind);
    a.group = std::move(in_group);
    g_.actors.push_back(std::move(a));
    return g_.actors.back().id;
  }

  void edge(std::size_t from, std::size_t to, std::string message, kind k,
            std::uint64_t bytes = 0) {
    g_.edges.push_back({g_.edges.size(), from, to, std::move(message), k, bytes});
  }

  static constexpr auto no_actor = static_cast<std::size_t>(-1);

  const net& train_;
  const partition& partition_;
  cluster_size size_;
  actor_graph g_;
  std::size_t node_ = 0, solver_ = 0, shard_ = 0, checkpointer_ = 0, selector_ = 0;
  std::size_t keeper_ = no_actor;
  std::vector<std::size_t> streams_, links_, receivers_;        // links: by worker
  std::vector<std::vector<std::size_t>> layers_, test_layers_;  // by (net and) replica, then layer
};

}  // namespace

actor_graph plan_graph(const net& train, const partition& p, cluster_size size,
                       std::span<const net> test_nets) {
  return planner(train, p, size).run(test_nets);
}

}  // namespace poseidon
