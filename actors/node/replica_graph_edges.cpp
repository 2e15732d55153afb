// actors/node/replica_graph_edges.cpp - the second half of replica_graph: which actors are neighbours.
#include "actors/node/replica_graph.hpp"

#include <algorithm>

namespace poseidon {

namespace {

/// Where the passes of a net turn back, and where the user sees something of them.
bool turns(const compiled_net& c, std::size_t l, const connect_layer& neighbours) {
  return neighbours.consumers.empty() ||
         std::any_of(c.readers.begin(), c.readers.end(),
                     [&](const auto& reader) { return reader.layer == l; });
}

}  // namespace

std::vector<port<hold_passes>> replica_graph::connect_net(const compiled_net& c,
                                                          const net_actors& a, bool training) {
  std::vector<port<hold_passes>> turning;
  const auto& layers = c.graph.layers;
  std::vector<std::vector<std::size_t>> starts(layers.size());  // by source: the layers it starts
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (const auto from = starter(c.graph, l)) starts[*from].push_back(l);
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      connect_layer m;
      for (const auto bottom : layers[l].bottoms)
        if (const auto from = producer(c.graph, bottom, l))
          m.producers.push_back(a.layers[r][*from]);
      for (const auto top : layers[l].tops)
        if (const auto to = consumer(c.graph, top, l)) m.consumers.push_back(a.layers[r][*to]);
      if (const auto from = starter(c.graph, l)) m.producers.push_back(a.layers[r][*from]);
      for (const auto started : starts[l]) m.consumers.push_back(a.layers[r][started]);
      for (std::size_t g = 0; training && g < groups_.size(); ++g)
        if (groups_[g].is_writer(l)) m.push = parameters_.exchange(g);
      if (training && turns(c, l, m)) {
        m.held = solver_;
        turning.push_back(a.layers[r][l]);
      }
      tell_from_outside(a.layers[r][l], m);
    }
    for (std::size_t d = 0; d < c.data_layers.size(); ++d)
      tell_from_outside(a.sources[r][d], connect_data_source{a.layers[r][c.data_layers[d]]});
  }
  return turning;
}

std::vector<group_readers> replica_graph::readers() const {
  std::vector<group_readers> out(groups_.size());
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const auto l : groups_[g].layers) out[g].fresh.push_back(train_.layers[r][l]);
      for (const auto l : groups_[g].writers) out[g].taken.push_back(train_.layers[r][l]);
    }
    for (std::size_t t = 0; t < tests_.size(); ++t) {
      const auto& layers = run_.tests[t].graph.layers;
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const auto group = layers[l].parameters.empty() ? std::nullopt : group_of(layers[l].name);
        if (group) out[*group].fresh.push_back(tests_[t].layers[r][l]);
      }
    }
  }
  return out;
}

void replica_graph::connect(const std::vector<port<send_frame>>& links) {
  connect_solver s;
  s.turns = connect_net(run_.train, train_, true);
  for (std::size_t t = 0; t < tests_.size(); ++t)
    (void)connect_net(run_.tests[t], tests_[t], false);
  s.part = part_of_view();
  s.train = solver_view(run_.train, train_);
  for (std::size_t t = 0; t < tests_.size(); ++t) {
    s.tests.push_back(solver_view(run_.tests[t], tests_[t]));
    s.tests.back().share = share_of_test(t);
  }
  if (context_.self == context_.leader) {
    s.checkpointer = parameters_.checkpoints();
    s.floor = parameters_.checkpoints();
  } else {
    s.to_leader = links.at(value(context_.leader));
  }
  s.side_branches = parameters_.side_branches();
  s.node_stop = context_.node_stop;
  s.node_done = context_.node_done;
  s.node_failed = context_.node_failed;
  s.node_held = context_.node_held;
  s.node_paused = context_.node_paused;
  s.node_gave_up = context_.node_gave_up;
  tell_from_outside(solver_, s);
}

/// The group of a layer with parameters, by its name: test nets find theirs in the train net.
std::optional<std::size_t> replica_graph::group_of(std::string_view train_layer) const {
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (const auto l : groups_[g].layers)
      if (run_.train.graph.layers[l].name == train_layer) return g;
  return std::nullopt;
}

solver_net replica_graph::solver_view(const compiled_net& c, const net_actors& a) const {
  solver_net out;
  for (const auto& of_replica : a.sources)
    out.sources.emplace_back(of_replica.begin(), of_replica.end());
  out.outputs = c.outputs;
  return out;
}

test_share replica_graph::share_of_test(std::size_t test_net) const {
  const auto iterations = spec_.solver.spec.test_iter(static_cast<int>(test_net));
  return {static_cast<std::uint64_t>(iterations), spec_.workers, value(context_.self),
          run_.replicas, run_.tests[test_net].batch};
}

}  // namespace poseidon
