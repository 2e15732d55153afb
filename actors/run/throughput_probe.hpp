// actors/run/throughput_probe.hpp
//
// How fast this node trains, before there are actors: a few iterations of its own compiled net on its own devices, all
// replicas side by side as in training, with the batch that the net says. What shares of the global batch follow.
#pragma once
#include "actors/core/long_task.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <cstdint>

namespace poseidon {

struct node_speed {
  std::uint32_t replicas = 0;  ///< that the node will have; 0: nobody has said
  double samples_s = 0;        ///< 0: not measured
  std::uint64_t batch = 0;     ///< of the net
};

/// What is said before anybody can join: whether this net's batch can have uneven shares at all.
/// Errors   spec_error, as require_sample_means and compile_run.
void require_shares(const run_definition& run, const node_spec& node);

/// Takes tenths of a second, in this thread and one for each further replica; nothing where the device has been told
/// its times. Without `measure` it only says how many replicas this node has.
/// Errors   spec_error: as compile_run; --own-data; a batch with fewer samples than replicas; a profile without times.
[[nodiscard]] node_speed speed_of(const run_definition& run, const node_spec& node, bool measure,
                                  const task_display& display = {});

}  // namespace poseidon
