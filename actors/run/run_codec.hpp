// actors/run/run_codec.hpp - a run's specification as it travels to the joiners, and back.
#pragma once
#include "actors/run/run_definition.hpp"
#include "messages/frames.hpp"

#include <vector>

namespace poseidon {

/// All fields but `you` and `members`.
[[nodiscard]] frames::view view_of(const run_definition& run);

/// As a view tells them; it says the samples of one of a clock's passes.
[[nodiscard]] node_shares shares_told(const std::vector<frames::share>& shares,
                                      const solver_file& solver);

/// Errors   std::invalid_argument: the solver does not parse or contradicts itself (a peer of another
///          build).
[[nodiscard]] run_definition run_of(const frames::view& v);

}  // namespace poseidon
