// replay/replay_device.hpp
//
// A device that does not compute: each kernel sleeps for the time that a profile gives its layer, and everything around
// it (actors, links, shards, bytes) is real. Several nodes with the layer times of fast GPUs then fit on a few cores, and
// shaped links show how long training would take on that cluster.
//
// A kernel ends at an absolute moment: its duration after the later of its issue and the end of the kernel before, as on
// a GPU whose queue is never late. So late wake-ups and late threads do not add up.
//
// Gradients are finite and the same in every pass; outputs are 1; data is not read. Another device really computes sums
// and solver updates. Factors have no values and no updates: reconstructing a gradient takes the time of its product,
// one product after the other, beside the stream, as on a second stream of a GPU.
#pragma once
#include "models/device/device.hpp"
#include "models/plan/profile.hpp"
#include "replay/sleep_clock.hpp"

#include <memory>

namespace poseidon {

/// `host` does the sums and updates. make_replica() takes the profile's times, in proportion to the batch of
/// the net and to replica_options::time_scale, and accepts nets with scaled parameters. reconstruct_gradient() takes its
/// product's time at the profile's gflop_s, in proportion to the time_scale of the replica made last.
/// Errors   make_replica(): spec_error for a profile of another net, a time_scale that is not above 0, or layers that
///          broadcast factors and a profile that does not know the rate of products.
[[nodiscard]] std::shared_ptr<device> make_replay_device(
    profile times, std::shared_ptr<device> host,
    std::shared_ptr<replay::sleep_clock> clock = replay::make_sleep_clock());

}  // namespace poseidon
