// actors/training/test_progress.hpp
//
// A test phase on one node: which pass may start on which replica, and the sums of the outputs. test_share
// (data/sample_schedule.hpp) says which batches are this node's. Pure bookkeeping.
#pragma once
#include "data/sample_schedule.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace poseidon {

class test_progress {
 public:
  /// At most this many passes of a replica are issued and not yet computed: there is no other limit.
  static constexpr std::uint64_t in_flight = 2;

  test_progress() = default;
  test_progress(test_share share, std::size_t values_per_pass);

  /// The next pass that may start on this replica now; counts it as started.
  [[nodiscard]] std::optional<std::uint64_t> start(std::uint64_t replica);
  /// finished() when the passes that have started are.
  void start_no_more();
  void issued(std::uint64_t replica, std::size_t data_layers);
  void computed(std::uint64_t replica, std::size_t first, const std::vector<float>& values);
  [[nodiscard]] bool finished() const;
  [[nodiscard]] const std::vector<double>& sums() const { return sums_; }
  [[nodiscard]] std::uint64_t passes() const;
  [[nodiscard]] std::uint64_t computed() const;  ///< how many of passes()

 private:
  struct progress {
    std::uint64_t wanted = 0, started = 0, issued_layers = 0, issued = 0;
    std::size_t values = 0;
  };
  [[nodiscard]] std::uint64_t computed_by(const progress& r) const;
  test_share share_;
  std::size_t values_per_pass_ = 1;
  std::vector<progress> replicas_;
  std::vector<double> sums_;
};

}  // namespace poseidon
