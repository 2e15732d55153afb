// actors/run_facts.hpp - what a page says of a run before anything has moved.
#pragma once
#include "actors/cluster_view.hpp"
#include "actors/compiled_run.hpp"
#include "actors/run_spec.hpp"
#include "models/route_choice.hpp"

#include <vector>

namespace poseidon {

/// All but self and members. `decisions` as the protocol_selector made them; empty on other nodes than the first, and
/// where there was nothing to decide.
[[nodiscard]] run_facts facts_of(const compiled_run& run, const run_spec& spec,
                                 const std::vector<route_decision>& decisions);

}  // namespace poseidon
