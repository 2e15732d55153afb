// actors/run/compile_declared.hpp - makes a compiled run of the parameters that a program has declared.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <memory>

namespace poseidon {

/// The partition and the store, with room for two versions of everything; no replicas, no data. `before`: the store of the
/// routes before these, whose values stay where they are; null: a new one.
/// Errors   spec_error: a route or rows of factors that a parameter cannot have.
[[nodiscard]] std::unique_ptr<compiled_run> compile_declared(
    const run_definition& run, const node_spec& node, const parameter_store* before = nullptr);

}  // namespace poseidon
