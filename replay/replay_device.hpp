// replay/replay_device.hpp
//
// A device that does not compute: each kernel takes the time that a profile gives its layer, asleep, and
// everything around it (actors, links, shards, bytes) is real. Several nodes with the layer times of fast GPUs
// then fit on a few cores, and on links that are shaped one can see what training would take on that cluster.
//
// A kernel ends at an absolute moment: duration + the later of when it was issued and when the kernel before
// it ended, as on a GPU whose queue is never late. So neither a late wake-up nor a late thread adds up.
//
// Gradients are there, finite and the same in every pass; outputs are 1; data is not looked at. Sums and solver
// updates are another device's, really computed. Factors have no values and no updates: a gradient that is made of them
// takes the time of its product, one after the other, beside the stream as a second stream of the GPU would.
#pragma once
#include "models/device/device.hpp"
#include "models/plan/profile.hpp"
#include "replay/sleep_clock.hpp"

#include <memory>

namespace poseidon {

/// `host` does the sums and updates. make_replica() takes the profile's times, in proportion to the batch of
/// the net and to replica_options::time_scale, and does not mind nets with scaled parameters.
/// reconstruct_gradient() takes its product's time at the profile's gflop_s, in proportion to the time_scale of the replica made last.
/// Errors   make_replica(): spec_error for a profile of another net, a time_scale that is not above 0, or layers that
///          broadcast factors and a profile that does not know the rate of products.
[[nodiscard]] std::shared_ptr<device> make_replay_device(
    profile times, std::shared_ptr<device> host,
    std::shared_ptr<replay::sleep_clock> clock = replay::make_sleep_clock());

}  // namespace poseidon
