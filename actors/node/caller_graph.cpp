#include "actors/node/caller_graph.hpp"

#include <utility>

namespace poseidon {

caller_graph::caller_graph(const graph_context& context, actor_spawner& spawner,
                           std::size_t workers, std::shared_ptr<program> from,
                           const parameter_graph& parameters)
    : context_(context), parameters_(parameters), caller_(context.lasting.the_caller) {
  from->factors.set(parameters.factors());
  if (caller_) {
    spawner.adopt(caller_);
    return;
  }
  caller_setup s;
  s.self = context.self;
  s.leader = context.leader;
  s.workers = workers;
  s.from = std::move(from);
  s.overlap = context.lasting.overlap;
  s.display = context.display;
  s.carried = context.carried;
  s.trace = spawner.lane("program");
  caller_ = spawner.start<caller>(thread_kind::shared, "caller", std::move(s));
}

void caller_graph::connect(const std::vector<port<send_frame>>& links) {
  connect_caller c;
  // A group is one parameter, with its number.
  for (std::size_t g = 0; g < parameters_.groups(); ++g)
    c.pushes.push_back(parameters_.exchange(g));
  c.checkpointer = parameters_.checkpoints();
  if (context_.self != context_.leader) c.to_leader = links.at(value(context_.leader));
  c.node = context_.node_done;
  c.node_held = context_.node_held;
  c.node_paused = context_.node_paused;
  c.node_offered = context_.node_offered;
  tell_from_outside(caller_, c);
}

}  // namespace poseidon
