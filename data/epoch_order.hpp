// data/epoch_order.hpp
//
// The order in which an epoch uses n things: their own order, or a new random order each epoch that
// depends on (seed, key, epoch) alone, so that every node and replica computes the same order and
// together they use each thing once per epoch.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace poseidon {

struct shuffle_key {
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;
  std::uint32_t part = 0;  ///< which part, for a layer that shuffles several things
};

using permutation = std::shared_ptr<const std::vector<std::uint32_t>>;

/// 0 ... n - 1 in the order of one epoch.   Cost   n random numbers.
[[nodiscard]] permutation shuffled(std::uint64_t n, const shuffle_key& key, std::uint64_t epoch);

/// Thread-safe. Keeps the orders of the two epochs used last: readers of one source are never
/// further apart.
class epoch_order {
 public:
  /// Without a shuffle `n` may be anything; with one it is below 2^32.
  /// Errors   std::invalid_argument: more than that.
  epoch_order(std::uint64_t n, bool shuffles, const shuffle_key& key);

  /// The index among the n things of global sample `sample`.
  [[nodiscard]] std::uint64_t at(std::uint64_t sample) const;

 private:
  struct known {
    std::uint64_t epoch = 0;
    permutation order;
  };
  std::uint64_t n_;
  bool shuffles_;
  shuffle_key key_;
  mutable std::mutex mutex_;
  mutable std::array<known, 2> known_;  // the latest first
};

}  // namespace poseidon
