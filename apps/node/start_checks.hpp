// apps/node/start_checks.hpp - what the first node looks at before training begins, so that a mistake costs seconds and not
// the hours until the first snapshot.
#pragma once
#include "actors/run/run_definition.hpp"
#include "apps/node/options.hpp"
#include "models/solver/solver_file.hpp"

#include <string>
#include <vector>

namespace poseidon::app {

/// A solver that could not train: without max_iter, with a snapshot_prefix where nothing can be written, or with snapshots in HDF5 where its plug-in is missing.
/// Errors   spec_error; std::runtime_error of need_hdf5().
void check_solver(const solver_file& solver);

/// solver_mode: GPU and device_id choose a GPU if the command line names no device and a GPU plug-in runs here.
/// Returns  a warning if the solver wants a GPU and there is none.
[[nodiscard]] std::vector<std::string> take_solver_mode(const solver_file& solver, node_options& o);

/// Large momentum and late gradients amplify each other (docs/decisions/015).
[[nodiscard]] std::vector<std::string> warn_of_staleness(const solver_file& solver,
                                                         const node_options& o);

/// --lost-state, and --survive, or 1 without it, where this run can keep copies of solver state that cost no bytes, and others are there or may join.
/// Returns  a warning if it was asked for and cannot be.
[[nodiscard]] std::vector<std::string> take_survive(run_definition& run, const node_options& o);

/// For whoever has not said what a lost node is to do, where the answer is not the usual one; empty: it is, or it was said.
[[nodiscard]] std::string note_on_losses(const run_definition& run, const node_options& o);

}  // namespace poseidon::app
