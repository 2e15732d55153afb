#include "actors/node/caller_graph.hpp"

#include <mutex>
#include <utility>

namespace poseidon {

caller_graph::caller_graph(const graph_context& context, actor_spawner& spawner,
                           const run_definition& spec, std::shared_ptr<program> from,
                           const parameter_graph& parameters)
    : context_(context),
      parameters_(parameters),
      view_{context.epoch, spec.first_clock, context.seats, context.self},
      caller_(context.lasting.the_caller) {
  from->outlives_losses = spec.survive > 0;
  {
    const std::lock_guard lock(from->lending);
    from->factors.move(parameters.factors(), context.self, clock_id{spec.first_clock});
  }
  if (caller_) {
    spawner.adopt(caller_);
    return;
  }
  caller_setup s;
  s.from = std::move(from);
  s.overlap = context.lasting.overlap;
  s.display = context.display;
  s.carried = context.carried;
  s.trace = spawner.lane("program");
  caller_ = spawner.start<caller>(thread_kind::shared, "caller", std::move(s));
}

void caller_graph::connect(const std::vector<port<send_frame>>& links) {
  connect_caller c;
  c.view = view_;
  c.lacks_values = context_.lacks_values;
  c.comes = context_.comes;
  c.leader = context_.leader;
  // A group is one parameter, with its number.
  for (std::size_t g = 0; g < parameters_.groups(); ++g)
    c.pushes.push_back(parameters_.exchange(g));
  c.checkpointer = parameters_.checkpoints();
  if (context_.self != context_.leader) c.to_leader = links.at(value(context_.leader));
  c.node = context_.node_done;
  c.node_goes_on = context_.node_goes_on;
  c.node_held = context_.node_held;
  c.node_paused = context_.node_paused;
  c.node_gave_up = context_.node_gave_up;
  c.node_offered = context_.node_offered;
  tell_from_outside(caller_, c);
}

}  // namespace poseidon
