// gpu/blob_memory.hpp - the blobs of a replica in device memory: one arena, in which blobs that are never in use at the
// same time share places (models/device/memory_plan.hpp), and memory of their own for blobs that outlive a pass.
#pragma once
#include "gpu/layer.hpp"

namespace poseidon::gpu {

/// Writes   data and diff of every blob, and the memory they lie in; zeros, but the diff of a loss is its weight. The
///          tops of a Split are other names for its bottom's data where nothing works in place on them, and for the
///          diff of a sum that gives one gradient to all (gpu/residual.hpp).
///          With options.keep_all_diffs every blob has data and diff of its own.
/// Errors   gpu::error (memory): the memory that the net needs, its largest blob, the memory that is free, and advice.
void allocate_blobs(replica_state& state);

/// Device memory that holds zeros when the function returns, for `what`: "the blobs of net \"AlexNet\"". Not for the training loop.
/// Errors   gpu::error (memory): the memory that `what` needs, the memory that is free, and `advice`.
[[nodiscard]] device_memory claim(stream& s, std::size_t bytes, const std::string& what,
                                  const std::string& advice);

/// The error for memory that the device does not have, with all that claim() says.
[[nodiscard]] error explained(const error& e, int device, std::size_t bytes,
                              const std::string& what, const std::string& advice);

/// Advice for a replica that does not fit.
inline constexpr const char* smaller_batch =
    "Try a smaller batch_size, with iter_size to make up for it, or more devices.";
/// Advice for parameters, whose size does not depend on the batch.
inline constexpr const char* larger_device = "Use a device with more memory.";

}  // namespace poseidon::gpu
