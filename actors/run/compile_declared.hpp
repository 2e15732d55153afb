// actors/run/compile_declared.hpp - makes a compiled run of the parameters that a program has declared.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <memory>

namespace poseidon {

/// The partition and the store, with room for two versions of everything; no replicas, no data.
[[nodiscard]] std::unique_ptr<compiled_run> compile_declared(const run_definition& run,
                                                             const node_spec& node);

}  // namespace poseidon
