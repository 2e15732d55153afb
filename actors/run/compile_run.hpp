// actors/run/compile_run.hpp - makes a compiled run of what its user's files say.
#pragma once
#include "actors/core/long_task.hpp"
#include "actors/parameters/parameter_store.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"
#include "models/net/net.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace poseidon {

class opened_images;  // data/image_store.hpp

/// Opens the data, builds the nets, compiles the replicas. `display` shows the progress. `opened`: what is open already; may be null.
/// Errors   spec_error for what the user's files say, and for routes that do not fit the net;
///          std::runtime_error for what the device refuses.
[[nodiscard]] std::unique_ptr<compiled_run> compile_run(const run_definition& run,
                                                        const node_spec& node,
                                                        const task_display& display = {},
                                                        std::shared_ptr<opened_images> opened = {});
/// For one run's nets; `display` shows the opening of a large data set.
[[nodiscard]] std::shared_ptr<opened_images> open_for(const task_display& display);

/// Fits what was compiled for another view of the run to this one, without compiling: cuts the parameters anew, and keeps nets, data,
/// replicas and values. Call it only while no actor uses them. False: something else changes with the view, or may change;
/// then it has done nothing.
/// Errors   spec_error, as compile_run, for routes that do not fit the net.
[[nodiscard]] bool fit_to_view(compiled_run& c, const run_definition& run, const node_spec& node);

/// The first values: fillers, then the layers of each file of `weights` by name, one file after the other.
/// Writes   every parameter's place of `version` in the store, from where publish() makes them current.
/// Errors   spec_error for a file that does not fit; nothing is to be published then.
void write_first_values(const net& train, std::uint64_t seed,
                        const std::vector<std::filesystem::path>& weights, std::uint64_t version,
                        parameter_store& store);

}  // namespace poseidon
