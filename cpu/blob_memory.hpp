// cpu/blob_memory.hpp - where the blobs of a replica lie: one arena, in which blobs that are never in use at the
// same time share places (models/device/memory_plan.hpp), and memory of their own for those that outlive a pass.
#pragma once
#include "cpu/layer.hpp"

namespace poseidon::cpu {

/// Writes   state.arena, and data and diff of every blob. After the blobs' forms are chosen, before kernels are
///          made. With options.keep_all_diffs every blob has data and diff of its own.
void allocate_blobs(replica_state& state);

}  // namespace poseidon::cpu
