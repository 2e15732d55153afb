// actors/run/data_sets.hpp
//
// What the data layers of a run read, and whether this node reads the same as the first one. Nodes share the samples of a data set by
// their numbers: with data of another shape gradients do not fit, with fewer records some samples are used twice and others never.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <memory>
#include <vector>

namespace poseidon {

class opened_images;  // data/image_store.hpp

/// By net, then data layer; empty: this node's device replays times, and reads nothing, or programs compute the gradients.
[[nodiscard]] std::vector<frames::data_set> data_sets_of(const compiled_run& c);
/// Before the run is compiled. Opens sources for this alone.  Errors   spec_error, as compile_run.
[[nodiscard]] std::vector<frames::data_set> data_sets_of(
    const run_definition& run, const node_spec& node, const std::shared_ptr<opened_images>& opened);

/// Compares what this node reads with what the run's first node does. With --own-data, on either, the train net's number of records is
/// not compared.  Errors   spec_error naming layer and both values.
void compare_data(const std::vector<frames::data_set>& here, const run_definition& run,
                  const node_spec& node);

}  // namespace poseidon
