// models/device/blob_needs.hpp - which layers' passes use a blob, whatever device they run on.
#pragma once
#include "models/device/memory_plan.hpp"

#include <vector>

namespace poseidon {

struct blob_needs {
  std::vector<net_event> data_uses, diff_uses;
  bool has_diff = false;      ///< some kernel reads or writes it
  bool diff_written = false;  ///< by a consumer in every pass; else it stays as it is at first
  bool output = false;        ///< nothing consumes what its last writer made
};

/// Data that a layer's backward() reads.
struct backward_reads {
  bool bottoms = true, tops = true;
};

/// By blob. `backward`: does the net go back at all? `all_diffs`: every top has a diff, wanted or not. `reads`: what is known of
/// a device's kernels.
[[nodiscard]] std::vector<blob_needs> needs_of_blobs(const net& n, bool backward, bool all_diffs,
                                                     backward_reads (*reads)(const net_layer&));

}  // namespace poseidon
