// actors/node/training_graph.hpp
//
// The actors of a node that train, on one compiled run: a parameter_graph, and what gives it gradients: a replica_graph, or a
// caller_graph where a program computes them. The links to other nodes are made by `node`, which has the connections, and given to connect().
#pragma once
#include "actors/node/caller_graph.hpp"
#include "actors/node/node_setup.hpp"
#include "actors/node/replica_graph.hpp"
#include "actors/node/trainer.hpp"
#include "actors/parameters/parameter_graph.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace poseidon {

class training_graph {
 public:
  /// Spawns all actors but the links and what lasts. `run` must outlive the actors.
  /// `from`: the program that computes the gradients; null where the run has nets.
  training_graph(const graph_context& context, const run_definition& spec, const node_spec& node,
                 compiled_run& run, std::shared_ptr<program> from = {});

  /// Tells all actors their neighbours. `links` by worker, empty at self.
  void connect(const std::vector<port<send_frame>>& links);

  [[nodiscard]] const parameter_graph& parameters() const { return parameters_; }
  [[nodiscard]] trainer the_trainer() const {
    return replicas_ ? trainer_of(replicas_->the_solver()) : trainer_of(callers_->the_caller());
  }
  [[nodiscard]] lasting_actors lasting() const;

  /// All actors, in the order in which they are told to end; and those of them that do not last.
  [[nodiscard]] const std::vector<port<shut_down>>& all() const { return spawner_.all(); }
  [[nodiscard]] std::vector<port<shut_down>> passing() const;
  /// The actors that this graph has spawned.
  [[nodiscard]] const std::vector<caf::actor>& monitored() const { return spawner_.spawned(); }

 private:
  actor_spawner spawner_;
  std::shared_ptr<overlap_meter> overlap_;
  parameter_graph parameters_;
  // One of the two.
  std::optional<replica_graph> replicas_;
  std::optional<caller_graph> callers_;
};

}  // namespace poseidon
