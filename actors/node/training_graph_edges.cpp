// actors/node/training_graph_edges.cpp - the second half of training_graph: tells the actors their neighbours, and how much a
// pass counts.
#include "actors/node/training_graph.hpp"

namespace poseidon {

void training_graph::connect_net(const compiled_net& c, const net_actors& a, bool training) {
  const auto& layers = c.graph.layers;
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      connect_layer m;
      for (const auto bottom : layers[l].bottoms)
        if (const auto from = producer(c.graph, bottom, l))
          m.producers.push_back(a.layers[r][*from]);
      for (const auto top : layers[l].tops)
        if (const auto to = consumer(c.graph, top, l)) m.consumers.push_back(a.layers[r][*to]);
      if (const auto from = starter(c.graph, l)) m.producers.push_back(a.layers[r][*from]);
      for (std::size_t other = 0; other < layers.size(); ++other)
        if (starter(c.graph, other) == l) m.consumers.push_back(a.layers[r][other]);
      if (training)
        for (const auto& e : pushes_)
          if (e.group.is_writer(l))
            m.push = e.broadcast ? port<backward_done>(e.broadcast) : port<backward_done>(e.push);
      tell_from_outside(a.layers[r][l], m);
    }
    for (std::size_t d = 0; d < c.data_layers.size(); ++d)
      tell_from_outside(a.sources[r][d], connect_data_source{a.layers[r][c.data_layers[d]]});
  }
}

/// Layers of training and of test nets, of every replica.
std::vector<port<parameters_fresh>> training_graph::readers_of(const push_entry& e) const {
  std::vector<port<parameters_fresh>> out;
  for (std::uint32_t r = 0; r < run_.replicas; ++r) {
    for (const auto l : e.group.layers) out.push_back(train_.layers[r][l]);
    for (std::size_t t = 0; t < tests_.size(); ++t) {
      const auto& layers = run_.tests[t].graph.layers;
      for (std::size_t l = 0; l < layers.size(); ++l)
        if (!layers[l].parameters.empty() && push_of(layers[l].name) == &e)
          out.push_back(tests_[t].layers[r][l]);
    }
  }
  return out;
}

void training_graph::connect_pushes(const std::vector<port<send_frame>>& links) {
  for (const auto& e : pushes_) {
    if (e.broadcast) {
      tell_from_outside(e.broadcast,
                        connect_factor_broadcast{links, readers_of(e), lasting_.the_solver,
                                                 lasting_.checkpoints});
      continue;
    }
    connect_gradient_push m;
    m.links = links;
    m.own_shard = shard_;
    m.own_shard_install = shard_;
    m.layers = readers_of(e);
    m.solver = lasting_.the_solver;
    for (std::uint32_t r = 0; r < run_.replicas; ++r)
      for (const auto l : e.group.writers) m.layers_taken.push_back(train_.layers[r][l]);
    tell_from_outside(e.push, m);
  }
}

void training_graph::connect(const std::vector<port<send_frame>>& links) {
  connect_shard shard;
  shard.links = links;
  for (std::size_t p = 0; p < run_.train.graph.parameters.size(); ++p)
    shard.gather.push_back(receiver_of(p));
  shard.checkpointer = lasting_.checkpoints;
  tell_from_outside(shard_, shard);
  connect_checkpointer snapshots{&run_.train.graph, run_.store, links, shard_, {}};
  for (const auto& e : pushes_)
    if (e.broadcast) snapshots.own_broadcasts.push_back(e.broadcast);
  tell_from_outside(lasting_.checkpoints, snapshots);
  connect_pushes(links);
  connect_net(run_.train, train_, true);
  for (std::size_t t = 0; t < tests_.size(); ++t) connect_net(run_.tests[t], tests_[t], false);

  connect_solver s;
  s.train = solver_view(run_.train, train_);
  for (std::size_t t = 0; t < tests_.size(); ++t)
    s.tests.push_back(solver_view(run_.tests[t], tests_[t]));
  if (value(context_.self) == 0)
    s.checkpointer = lasting_.checkpoints;
  else
    s.to_first = links.front();
  s.node_stop = context_.node_stop;
  s.node_done = context_.node_done;
  s.node_failed = context_.node_failed;
  s.node_held = context_.node_held;
  s.node_paused = context_.node_paused;
  tell_from_outside(lasting_.the_solver, s);
}

/// Null for layers without parameters. Test nets find theirs by the layer's name.
const training_graph::push_entry* training_graph::push_of(std::string_view train_layer) const {
  for (const auto& e : pushes_)
    for (const auto l : e.group.layers)
      if (run_.train.graph.layers[l].name == train_layer) return &e;
  return nullptr;
}

std::vector<port<shut_down>> training_graph::passing() const {
  std::vector<port<shut_down>> out;
  for (const auto& a : all_)
    if (a.target() != port<shut_down>(lasting_.the_solver).target() &&
        a.target() != port<shut_down>(lasting_.checkpoints).target())
      out.push_back(a);
  return out;
}

std::vector<port<release_history>> training_graph::histories() const {
  std::vector<port<release_history>> out{shard_};
  for (const auto& e : pushes_)
    if (e.broadcast) out.push_back(e.broadcast);
  return out;
}

solver_net training_graph::solver_view(const compiled_net& c, const net_actors& a) const {
  solver_net out;
  for (const auto& of_replica : a.sources)
    out.sources.emplace_back(of_replica.begin(), of_replica.end());
  out.outputs = c.outputs;
  for (std::size_t t = 0; t < run_.tests.size(); ++t)
    if (&run_.tests[t] == &c)
      out.share = {static_cast<std::uint64_t>(spec_.solver.spec.test_iter(static_cast<int>(t))),
                   spec_.workers, value(context_.self), run_.replicas, c.batch};
  return out;
}

port<chunk_landed> training_graph::receiver_of(std::size_t parameter) const {
  const auto& e = pushes_[push_of_parameter_[parameter]];
  return e.broadcast ? port<chunk_landed>(e.broadcast) : port<chunk_landed>(e.push);
}

port<history_arrived> training_graph::history_owner(std::size_t parameter) const {
  if (!on_factors(run_.store->cut(), parameter)) return shard_;
  return pushes_[push_of_parameter_[parameter]].broadcast;
}

port<factors_landed> training_graph::broadcast(layer_id layer) const {
  for (const auto& e : pushes_)
    if (e.broadcast && e.group.layers.front() == value(layer)) return e.broadcast;
  return {};
}

/// By worker, then pass of a clock: micro-batches, each with its replicas.
factor_rows training_graph::factor_rows_of(std::size_t layer) const {
  const auto rows = factors_of(run_.train.graph, layer).rows;
  const auto schedule = schedule_of(spec_, run_);
  factor_rows out;
  for (std::size_t w = 0; w < spec_.workers; ++w) {
    auto& passes = out.emplace_back();
    for (std::uint32_t m = 0; m < run_.micro_batches; ++m) {
      if (schedule.shares.empty()) {
        passes.insert(passes.end(), run_.replicas, rows);
        continue;
      }
      const auto& share = schedule.shares[w];
      for (std::uint32_t r = 0; r < share.replicas; ++r)
        passes.push_back(rows / run_.train.batch * samples_of(share, r));
    }
  }
  return out;
}

/// Replicas of a node, whose losses are means of their own; with uneven shares all of them together make one mean.
std::uint32_t training_graph::passes_that_count() const {
  return uneven(spec_.shares) ? 1 : run_.replicas;
}

/// A sum over all passes of a clock becomes their average.
float training_graph::scale() const {
  return 1.0f / static_cast<float>(spec_.workers * passes_that_count() * run_.micro_batches);
}

}  // namespace poseidon
