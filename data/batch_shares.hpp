// data/batch_shares.hpp
//
// The part of the global batch that each node takes, where the parts differ: by the nodes' speed or by weights that the
// user gives. Pure arithmetic with the same result on every machine; worker 0's node computes it once.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// One node's part of a clock: so many passes of so many samples, each divided among the node's replicas.
struct node_share {
  std::uint64_t samples = 0;  ///< of one pass of all its replicas
  std::uint32_t replicas = 1;
  std::uint32_t passes = 1;  ///< of a clock: its micro-batches

  friend bool operator==(const node_share&, const node_share&) = default;
};

/// By worker; empty: each node takes the net's batch iter_size times, and divides it among the same number of replicas.
using node_shares = std::vector<node_share>;

/// Whether parts differ between nodes or between replicas. A pass is then weighted by its number of samples.
[[nodiscard]] bool uneven(const node_shares& shares);

/// Samples of a node in a clock.
[[nodiscard]] std::uint64_t samples_of_clock(const node_share& share);
/// Samples of all nodes together in a clock.
[[nodiscard]] std::uint64_t samples_of_all(const node_shares& shares);

/// The samples of one replica of a node in one pass: where the share does not divide evenly, the first replicas take one more.
[[nodiscard]] std::uint64_t samples_of(const node_share& share, std::uint32_t replica);
/// Samples of the replicas before it.
[[nodiscard]] std::uint64_t samples_before(const node_share& share, std::uint32_t replica);

/// Splits `total` samples in proportion to the weights, whole samples, by largest remainders (the first of equal ones
/// wins), and at least one for each replica.
/// Errors   std::invalid_argument: the numbers of weights and replicas differ, a weight is not above 0 and finite, or
///          there are fewer samples than replicas.
[[nodiscard]] node_shares shares_by_weight(std::uint64_t total, std::span<const double> weights,
                                           std::span<const std::uint32_t> replicas);

/// "41 of 128 (32 %)": a share of the samples of an iteration.
[[nodiscard]] std::string describe_share(std::uint64_t samples, std::uint64_t of);

/// The value of --batch-share.
struct share_option {
  enum class kind { equal, automatic, weights };
  kind what = kind::equal;
  std::vector<double> weights;  ///< by worker
};

/// "equal", "auto", or one weight for each node, separated by commas.
/// Errors   std::invalid_argument with one line.
[[nodiscard]] share_option parse_shares(const std::string& text, std::size_t nodes);

}  // namespace poseidon
