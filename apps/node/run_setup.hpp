// apps/node/run_setup.hpp - what the options say about a run and about this node, as the actors take it.
#pragma once
#include "actors/node/run_node.hpp"
#include "apps/node/options.hpp"

#include <optional>

namespace poseidon::app {

/// Reads the solver and its nets; options that say otherwise win.
/// Errors   spec_error, std::runtime_error: a file is missing or wrong.
[[nodiscard]] run_definition read_run(const node_options& o);

/// Errors   std::runtime_error: a GPU that is not there, a profile that cannot be read.
[[nodiscard]] node_spec node_of(const node_options& o);

/// What this node can send to all others together, in Mbit/s; 0: not known.
[[nodiscard]] double node_mbit_s(const node_options& o);

/// `run`: of read_run(); a joiner has none.
[[nodiscard]] node_setup setup_of(const node_options& o, std::optional<run_definition> run);

/// Prints what each route would cost, and trains nothing. Returns  the exit code.
int explain_routes(const node_options& o);

}  // namespace poseidon::app
