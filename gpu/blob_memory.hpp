// gpu/blob_memory.hpp - where the blobs of a replica lie in device memory: one arena, in which blobs that are never in
// use at the same time share places (models/device/memory_plan.hpp), and memory of their own for those that outlive a pass.
#pragma once
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// Writes   data and diff of every blob, and the memory they lie in; zeros, but the diff of a loss is its weight. The
///          tops of a Split are other names for its bottom's data where nothing works in place on them, and for the
///          diff of a sum that gives one gradient to all (gpu/residual.hpp).
///          With options.keep_all_diffs every blob has data and diff of its own.
/// Errors   gpu::error (memory): how much the net wants, its largest blob, what there is, what to try.
void allocate_blobs(replica_state& state);

/// device_memory of zeros, which are there, for `what`: "the blobs of net \"AlexNet\"". Not for the training loop.
/// Errors   gpu::error (memory): the same, with `advice`.
[[nodiscard]] device_memory claim(stream& s, std::size_t bytes, const std::string& what,
                                  const std::string& advice);

/// Of memory that was not to be had: the error with all that claim() says.
[[nodiscard]] error explained(const error& e, int device, std::size_t bytes,
                              const std::string& what, const std::string& advice);

/// Of a replica that does not fit.
inline constexpr const char* smaller_batch =
    "Try a smaller batch_size, with iter_size to make up for it, or more devices.";
/// Of parameters, of which there are as many for every batch.
inline constexpr const char* larger_device = "Use a device with more memory.";

}  // namespace poseidon::gpu
