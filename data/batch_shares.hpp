// data/batch_shares.hpp
//
// Which part of the global batch each node takes, where these are not all alike: nodes of different speed, or weights
// that the user gives. Arithmetic only, the same on every machine; node asks it once, on worker 0.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace poseidon {

/// One node's part of a micro-batch of all nodes, and into how many replicas it is split there.
struct node_share {
  std::uint64_t samples = 0;
  std::uint32_t replicas = 1;

  friend bool operator==(const node_share&, const node_share&) = default;
};

/// By worker; empty: each takes the batch that the net says, split over as many replicas everywhere.
using node_shares = std::vector<node_share>;

/// Has anybody another part than the others, or replicas with different parts? Then a pass counts by its samples.
[[nodiscard]] bool uneven(const node_shares& shares);

/// Samples of all nodes together in a micro-batch.
[[nodiscard]] std::uint64_t samples_of_all(const node_shares& shares);

/// What one replica of a node takes of its share: the first ones take a sample more where it does not divide.
[[nodiscard]] std::uint64_t samples_of(const node_share& share, std::uint32_t replica);
/// Samples of the replicas before it.
[[nodiscard]] std::uint64_t samples_before(const node_share& share, std::uint32_t replica);

/// Splits `total` samples in proportion to the weights, whole samples, by largest remainders (the first of equal ones
/// wins), and at least one for each replica.
/// Errors   std::invalid_argument: as many weights as replicas are needed, all above 0 and finite; fewer samples than
///          replicas.
[[nodiscard]] node_shares shares_by_weight(std::uint64_t total, std::span<const double> weights,
                                           std::span<const std::uint32_t> replicas);

/// "41 of 128 (32 %)": of the samples of an iteration.
[[nodiscard]] std::string describe_share(std::uint64_t samples, std::uint64_t of);

/// What --batch-share says.
struct share_option {
  enum class kind { equal, automatic, weights };
  kind what = kind::equal;
  std::vector<double> weights;  ///< by worker
};

/// "equal", "auto", or weights with commas between them, as many as there are nodes.
/// Errors   std::invalid_argument with one line.
[[nodiscard]] share_option parse_shares(const std::string& text, std::size_t nodes);

}  // namespace poseidon
