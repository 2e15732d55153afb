// actors/telemetry/run_facts.hpp - what a page says of a run before anything has moved.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"
#include "actors/telemetry/cluster_view.hpp"
#include "models/plan/route_choice.hpp"

#include <string>
#include <vector>

namespace poseidon {

/// All but self and members. `decisions` as the protocol_selector made them; empty on other nodes than the first, and
/// where there was nothing to decide.
[[nodiscard]] run_facts facts_of(const compiled_run& run, const run_definition& spec,
                                 const std::vector<route_decision>& decisions);

/// Of a run whose routes have changed: a layer that has another route now than `before` has `changed` as its reason, the
/// others keep theirs. Predictions were for the run before and are gone.
void keep_reasons(const std::vector<run_facts::layer_route>& before, const std::string& changed,
                  std::vector<run_facts::layer_route>& now);

}  // namespace poseidon
