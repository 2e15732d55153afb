// actors/test_phase.hpp
//
// One node's share of a test phase: which pass may start on which replica, what has come back. Test batch k
// of a phase belongs to worker k % workers, and there to the replicas in turn. Pure bookkeeping.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace poseidon {

struct test_share {
  std::uint64_t batches = 0;  ///< of the whole phase, over all workers (test_iter)
  std::uint64_t workers = 1, self = 0, replicas = 1;

  /// Passes of one replica in each phase.
  [[nodiscard]] std::uint64_t passes(std::uint64_t replica) const;
  /// Test batch of the whole phase that is pass `n` of this replica, n < passes(replica).
  [[nodiscard]] std::uint64_t batch(std::uint64_t replica, std::uint64_t n) const;
};

class test_phase {
 public:
  /// At most this many passes of a replica are issued and not yet computed: nothing else holds them back.
  static constexpr std::uint64_t in_flight = 2;

  test_phase() = default;
  test_phase(test_share share, std::size_t values_per_pass);

  /// The next pass that may start on this replica now; counts it as started.
  [[nodiscard]] std::optional<std::uint64_t> start(std::uint64_t replica);
  void issued(std::uint64_t replica, std::size_t data_layers);
  void computed(std::uint64_t replica, std::size_t first, const std::vector<float>& values);
  [[nodiscard]] bool finished() const;
  [[nodiscard]] const std::vector<double>& sums() const { return sums_; }
  [[nodiscard]] std::uint64_t passes() const;

 private:
  struct progress {
    std::uint64_t started = 0, issued_layers = 0, issued = 0;
    std::size_t values = 0;
  };
  test_share share_;
  std::size_t values_per_pass_ = 1;
  std::vector<progress> replicas_;
  std::vector<double> sums_;
};

}  // namespace poseidon
