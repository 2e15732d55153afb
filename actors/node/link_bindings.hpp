// actors/node/link_bindings.hpp - what a link of this node is bound to: limits of the run, the actors that its frames go to, where
// values land, and what the peer may say next.
#pragma once
#include "actors/cluster/view.hpp"
#include "actors/links/network_link.hpp"
#include "actors/node/training_graph.hpp"
#include "actors/run/run_definition.hpp"

#include <memory>

namespace poseidon {

struct binding_context {
  const agreed_view& view;
  const run_definition& run;
  const compiled_run& compiled;
  const training_graph& graph;
  port<control_arrived> control;  ///< the node
  port<link_bound> bound;         ///< the node
  port<link_lost> lost;           ///< the node
  port<link_flow> flow;           ///< the node
  port<report_arrived> reports;   ///< telemetry, where the leader shows the run
  /// How parameters were cut before the view changed; null at the run's first clock.
  std::shared_ptr<const partition> before;
};

[[nodiscard]] std::shared_ptr<const link_binding> binding_to(worker_id peer,
                                                             const binding_context& c);

}  // namespace poseidon
