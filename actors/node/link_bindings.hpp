// actors/node/link_bindings.hpp - what a link of this node is bound to: the run's limits, the actors that its frames go
// to, the memory that values land in, and what the peer may say next.
#pragma once
#include "actors/client/program.hpp"
#include "actors/links/link_binding.hpp"
#include "actors/membership/view.hpp"
#include "actors/parameters/parameter_graph.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <memory>

namespace poseidon {

struct binding_context {
  const agreed_view& view;
  const run_definition& run;
  const compiled_run& compiled;
  const parameter_graph& parameters;
  port<control_arrived> control;  ///< the node
  port<link_bound> bound;         ///< the node
  port<link_lost> lost;           ///< the node
  port<link_flow> flow;           ///< the node
  port<report_arrived> reports;   ///< telemetry, where the leader shows the run
  /// How parameters were cut in the view before; null in the first one.
  std::shared_ptr<const partition> before;
  std::shared_ptr<program> around;  ///< where a program computes the gradients
  port<shared_landed> shared;       ///< the caller
};

[[nodiscard]] std::shared_ptr<const link_binding> binding_to(seat_id peer,
                                                             const binding_context& c);

}  // namespace poseidon
