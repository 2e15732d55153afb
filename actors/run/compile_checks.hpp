// actors/run/compile_checks.hpp - what a run cannot do with its nets, its nodes and their devices.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"
#include "models/device/device.hpp"
#include "models/net/net.hpp"
#include "models/plan/partition.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poseidon {

/// A node whose device replays times and a node whose device computes would spoil each other's model.
/// Errors   spec_error: the run replays a profile and the device computes, or the other way round; outer steps with what they do
///          not go with, an asynchronous device among that.
void check_device(const run_definition& run, const device& compute);

/// Routes and wire formats that worker 0 has chosen are one for each parameter, or none.
/// Errors   spec_error with both numbers.
void check_routes(const net& n, const run_definition& run);
void check_formats(const net& n, const run_definition& run);

/// What worker 0 has chosen has to be possible here, too: a program of another version may not be able to do it.
/// `weighed`: passes differ in their numbers of samples.
/// Errors   spec_error: a layer on a lowrank route that cannot take it.
void check_lowrank_layers(const net& n, const run_definition& run);

/// Errors   spec_error: a layer of `by_factors` that cannot broadcast factors.
void check_factor_layers(const net& n, const run_definition& run,
                         const std::vector<bool>& by_factors, bool weighed);

/// A shard stores the gradients of those clocks that a peer is ahead. Called before the memory is taken.
/// Errors   spec_error: more bytes than a link's pool has, with the staleness that is possible.
void check_staleness(const partition& cut, const run_definition& run);

/// Errors   spec_error: the shares are not those of `workers` batches of this size.
void check_shares(const run_definition& run, std::uint64_t batch);

/// Errors   spec_error: a batch of `samples` cannot be split over `replicas`.
void check_split(const compiled_net& train, std::uint32_t replicas);

/// One file has one writer: a run of several nodes or replicas, or of two nets, would have more.
/// Errors   spec_error: an HDF5Output layer that would not be the only one to write its file.
void refuse_writers(const compiled_run& c, const run_definition& run);

/// Errors   spec_error: keep_best or stop_at names what no test net puts out.
void check_goals(const compiled_run& c, const run_definition& run);

/// A warning for each layer that the device leaves to the host, once for all nets and replicas.
[[nodiscard]] std::vector<std::string> warn_of_host_layers(const compiled_run& c,
                                                           const device& compute);

/// A node whose --own-data differs from the first node's reads other samples than its user expects.
[[nodiscard]] std::vector<std::string> warn_of_own_data(const run_definition& run,
                                                        const node_spec& node);

}  // namespace poseidon
