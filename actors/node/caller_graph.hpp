// actors/node/caller_graph.hpp
//
// Puts the caller on a graph of parameters, where a program computes the gradients: the counterpart of replica_graph.
#pragma once
#include "actors/client/caller.hpp"
#include "actors/node/replica_graph.hpp"
#include "actors/run/run_definition.hpp"

#include <memory>
#include <vector>

namespace poseidon {

class caller_graph {
 public:
  /// Spawns the caller, unless `context` has it. `parameters` outlives this.
  caller_graph(const graph_context& context, actor_spawner& spawner, const run_definition& spec,
               std::shared_ptr<program> from, const parameter_graph& parameters);

  /// Tells the caller its neighbours. `links` by worker, empty at self.
  void connect(const std::vector<port<send_frame>>& links);
  [[nodiscard]] const handle<caller>& the_caller() const { return caller_; }

 private:
  graph_context context_;
  const parameter_graph& parameters_;
  program_view view_;
  handle<caller> caller_;
};

}  // namespace poseidon
