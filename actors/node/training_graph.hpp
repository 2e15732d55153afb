// actors/node/training_graph.hpp
//
// The actors of a node that train: a parameter_graph and the replica_graph that gives it gradients, on one compiled
// run. The links to other nodes are made by `node`, which has the connections, and given to connect().
#pragma once
#include "actors/node/replica_graph.hpp"
#include "actors/parameters/parameter_graph.hpp"

#include <vector>

namespace poseidon {

class training_graph {
 public:
  /// Spawns all actors but the links and what lasts. `run` must outlive the actors.
  training_graph(const graph_context& context, const run_definition& spec, const node_spec& node,
                 compiled_run& run);

  /// Tells all actors their neighbours. `links` by worker, empty at self.
  void connect(const std::vector<port<send_frame>>& links);

  [[nodiscard]] const parameter_graph& parameters() const { return parameters_; }
  [[nodiscard]] const handle<solver>& the_solver() const { return replicas_.the_solver(); }
  [[nodiscard]] lasting_actors lasting() const {
    return {the_solver(), parameters_.checkpoints(), overlap_};
  }

  /// All actors, in the order in which they are told to end; and those of them that do not last.
  [[nodiscard]] const std::vector<port<shut_down>>& all() const { return spawner_.all(); }
  [[nodiscard]] std::vector<port<shut_down>> passing() const;
  /// The actors that this graph has spawned.
  [[nodiscard]] const std::vector<caf::actor>& monitored() const { return spawner_.spawned(); }

 private:
  actor_spawner spawner_;
  std::shared_ptr<overlap_meter> overlap_;
  parameter_graph parameters_;
  replica_graph replicas_;
};

}  // namespace poseidon
