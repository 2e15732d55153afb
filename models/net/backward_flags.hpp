// models/net/backward_flags.hpp - which layers run backward, and for which bottoms.
#pragma once
#include <vector>

namespace poseidon {

struct net;

/// Decides needs_backward, propagate_down and (for force) learn of every layer from its
/// loss_weights, learn and the propagate_down of its specification, as Caffe does: a layer runs
/// backward if something below it or in it learns, and a loss lies above it.
void set_backward_flags(net& n, bool force_backward);

}  // namespace poseidon
