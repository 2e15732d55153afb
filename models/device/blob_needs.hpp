// models/device/blob_needs.hpp - the passes that use a blob, on any device.
#pragma once
#include "models/device/memory_plan.hpp"

#include <vector>

namespace poseidon {

struct blob_needs {
  std::vector<net_event> data_uses, diff_uses;
  bool has_diff = false;      ///< a kernel reads or writes the diff
  bool diff_written = false;  ///< a consumer writes it in every pass; else it does not change
  bool output = false;        ///< no layer consumes the values of its last writer
};

/// Data that a layer's backward() reads.
struct backward_reads {
  bool bottoms = true, tops = true;
};

/// The needs of all blobs. `backward`: has the net a backward pass? `all_diffs`: every top has a diff. `reads`: the reads of
/// the device's kernels.
[[nodiscard]] std::vector<blob_needs> needs_of_blobs(const net& n, bool backward, bool all_diffs,
                                                     backward_reads (*reads)(const net_layer&));

}  // namespace poseidon
