#include "actors/telemetry/living_graph.hpp"

#include "actors/core/actor_names.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace poseidon {

namespace {

/// Adds the living actors and their edges to the plan's groups.
class census {
 public:
  census(const worker_view& w, actor_graph plan) : w_(w), plan_(std::move(plan)) {
    auto& g = out_.graph;
    g.model = plan_.model;
    g.nodes = plan_.nodes;
    g.replicas = plan_.replicas;
    g.worker = plan_.worker;
    g.groups = plan_.groups;
  }

  living_graph run() {
    count_actors();
    count_edges();
    return std::move(out_);
  }

 private:
  static constexpr auto no_actor = static_cast<std::size_t>(-1);
  using ends = std::tuple<std::size_t, std::size_t, std::string_view>;

  void count_actors() {
    std::map<std::string_view, const actor_graph::node*> planned;
    for (const auto& n : plan_.actors) planned[n.name] = &n;
    ids_.assign(w_.graph.actors.size(), no_actor);
    for (std::size_t i = 0; i < w_.graph.actors.size(); ++i) {
      const auto& a = w_.graph.actors[i];
      if (a.ended) continue;
      const auto known = planned.find(a.name);
      actor_graph::node n;
      if (known != planned.end())
        n = *known->second;
      else
        n.group = "control";
      n.id = ids_[i] = out_.graph.actors.size();
      n.name = a.name;
      n.kind = a.type;
      by_name_[a.name] = n.id;
      out_.graph.actors.push_back(std::move(n));
      out_.actors.push_back(i);
    }
  }

  void count_edges() {
    std::map<ends, const actor_graph::edge*> planned;
    for (const auto& e : plan_.edges) {
      const auto from = by_name_.find(plan_.actors[e.src].name),
                 to = by_name_.find(plan_.actors[e.dst].name);
      if (from != by_name_.end() && to != by_name_.end())
        planned[{from->second, to->second, e.message}] = &e;
    }
    for (std::size_t i = 0; i < w_.graph.edges.size(); ++i) {
      const auto& e = w_.graph.edges[i];
      const auto from = ids_[e.from], to = ids_[e.to];
      if (from == no_actor || to == no_actor) continue;
      const auto known = planned.find({from, to, e.message});
      if (known == planned.end()) {
        add({0, from, to, e.message, actor_graph::edge_kind::control, 0}, static_cast<long>(i));
        continue;
      }
      add({0, from, to, e.message, known->second->kind, known->second->bytes},
          static_cast<long>(i));
      planned.erase(known);
    }
    for (const auto& [at, e] : planned)
      add({0, std::get<0>(at), std::get<1>(at), e->message, e->kind, e->bytes}, -1);
  }

  void add(actor_graph::edge e, long place) {
    e.id = out_.graph.edges.size();
    out_.graph.edges.push_back(std::move(e));
    out_.edges.push_back(place);
  }

  const worker_view& w_;
  actor_graph plan_;
  living_graph out_;
  std::vector<std::size_t> ids_;  // by place among the worker's actors
  std::map<std::string_view, std::size_t> by_name_;
};

/// Plans number the nodes by their places in the view; links bear seats.
actor_graph plan_of(const run_facts& facts, std::uint32_t seat, std::uint32_t replicas) {
  auto plan = facts.plan(facts.worker_of(seat), replicas);
  std::vector<std::uint32_t> seats;
  for (const auto& [s, address] : facts.members) seats.push_back(s);
  for (auto& a : plan.actors) {
    auto name = parse_actor_name(a.name);
    if (!name.worker || *name.worker >= seats.size()) continue;
    name.worker = seats[*name.worker];
    a.name = to_string(name);
  }
  return plan;
}

}  // namespace

living_graph living_graph_of(const cluster_view::state& s, std::uint32_t worker) {
  const auto at = s.workers.find(worker);
  if (at == s.workers.end()) return {};
  const auto& w = at->second;
  return census(w,
                s.facts && w.replicas > 0 ? plan_of(*s.facts, worker, w.replicas) : actor_graph{})
      .run();
}

}  // namespace poseidon
