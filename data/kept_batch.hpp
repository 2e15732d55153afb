// data/kept_batch.hpp
//
// How a global batch that stays is shared out among the members of a view, however many they are (--global-batch keep). Pure
// arithmetic with the same result on every machine, so every node computes it by itself.
//
// Every pass of a node has the same number of samples, because a compiled net has one size; and it has no more than the net's
// batch, for which there is memory. So a share is a product, and products of a few sizes have to add up to the global batch. Some
// members take a pass more than the others; those with the same number of passes have passes whose sizes differ by one sample at
// most. Of all such splits with about as many passes as the net's batch asks for, the one with the smallest largest share is
// taken, which ends first; of equal ones the one with the fewest passes. There always is one: with passes of the net's batch,
// or, for fewer batches than members, with one pass for each.
#pragma once
#include "data/batch_shares.hpp"

#include <cstddef>
#include <cstdint>

namespace poseidon {

struct kept_batch {
  std::uint64_t samples = 0;   ///< per clock, over all nodes: a multiple of `batch`
  std::uint64_t batch = 1;     ///< the net's; no node takes more samples in one pass
  std::uint32_t replicas = 1;  ///< of each node; each takes a sample of every pass, at least
};

/// By worker.
/// Errors   std::invalid_argument with one line: `samples` is no multiple of `batch`, or beyond 2^30, or there are fewer
///          samples than replicas of all nodes, or fewer in the net's batch than replicas of one node.
[[nodiscard]] node_shares shares_of(const kept_batch& kept, std::size_t nodes);

}  // namespace poseidon
