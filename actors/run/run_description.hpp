// actors/run/run_description.hpp
//
// What a node says about its run at --log-level debug: where everything is, who owns what, what the links
// carried. Pure text, one line each; node decides when it is said.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <string>
#include <vector>

namespace poseidon {

/// Nets, replicas, and every data source with its size.
[[nodiscard]] std::vector<std::string> describe_run(const compiled_run& run,
                                                    const run_definition& spec);

/// By parameter its shape, route and chunks; by worker what its shard owns.
[[nodiscard]] std::vector<std::string> describe_partition(const compiled_run& run,
                                                          std::size_t workers);

}  // namespace poseidon
