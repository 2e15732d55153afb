// actors/telemetry/run_facts.hpp - the facts of a run that are known before its first clock.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"
#include "actors/telemetry/cluster_view.hpp"
#include "models/plan/route_choice.hpp"

#include <string>
#include <vector>

namespace poseidon {

/// All facts but self and members. `decisions`: those of the protocol_selector; empty on other nodes than the first, and
/// where there was nothing to decide.
[[nodiscard]] run_facts facts_of(const compiled_run& run, const run_definition& spec,
                                 const std::vector<route_decision>& decisions);

/// After a change of routes: a layer that has another route now than `before` gets `changed` as its reason, the others
/// keep their reasons. Old predictions are dropped.
void keep_reasons(const std::vector<run_facts::layer_route>& before, const std::string& changed,
                  std::vector<run_facts::layer_route>& now);

}  // namespace poseidon
