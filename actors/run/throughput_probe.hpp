// actors/run/throughput_probe.hpp
//
// How fast this node trains, measured before there are actors: a few iterations of its own compiled net on its own
// devices, all replicas at the same time as in training, with the net's batch. Shares of the global batch are in
// proportion to it.
#pragma once
#include "actors/core/long_task.hpp"
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"

#include <cstdint>

namespace poseidon {

struct node_speed {
  std::uint32_t replicas = 0;  ///< that the node will have; 0: not known yet
  double samples_s = 0;        ///< 0: not measured
  std::uint64_t batch = 0;     ///< the net's
};

/// Checks, before other nodes can join, whether this net's batch can have uneven shares.
/// Errors   spec_error, as require_sample_means and compile_run.
void require_shares(const run_definition& run, const node_spec& node);

/// Seconds in which this node's replicas together pass the net's batch forward and backward once: as its device knows, or measured for tenths
/// of a second in this thread and one more for each further replica. 0: a profile that has no times of these layers.
/// Errors   spec_error: as compile_run.
[[nodiscard]] double pass_s_of(const run_definition& run, const node_spec& node,
                               const task_display& display = {});

/// Measures for tenths of a second, in this thread and one more for each further replica. A device that knows its times
/// is asked instead. Without `measure` the answer has only the number of replicas and the batch.
/// Errors   spec_error: as compile_run; --own-data; a batch with fewer samples than replicas; a profile without times.
[[nodiscard]] node_speed speed_of(const run_definition& run, const node_spec& node, bool measure,
                                  const task_display& display = {});

}  // namespace poseidon
