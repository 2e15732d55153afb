// actors/run/run_description.hpp
//
// Lines about a node's run: how its results relate to one node's; for --log-level debug its nets and data, and which shard
// owns which chunks. Pure text; node decides when to show it.
#pragma once
#include "actors/core/progress.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <string>
#include <vector>

namespace poseidon {

/// Nets, replicas, and every data source with its size.
[[nodiscard]] std::vector<std::string> describe_run(const compiled_run& run,
                                                    const run_definition& spec);

/// How the results of this run relate to those of one node; empty for one node. `nodes`: those that compute, and have computed
/// (with_kinds()).
[[nodiscard]] progress::promise describe_promise(const compiled_run& run,
                                                 const run_definition& spec,
                                                 const std::vector<frames::member>& nodes);

/// By parameter its shape, route and chunks; by worker what its shard owns.
[[nodiscard]] std::vector<std::string> describe_partition(const compiled_run& run,
                                                          std::size_t workers);

}  // namespace poseidon
