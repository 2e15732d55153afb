// actors/training/test_phases.hpp
//
// The test phases of one node: when one is due, which passes may start, and what a phase has found. A part of `solver`,
// without a mailbox; test_progress counts the passes of one net.
#pragma once
#include "actors/training/solver_setup.hpp"
#include "actors/training/test_progress.hpp"
#include "messages/frames.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace poseidon {

class test_phases {
 public:
  /// `setup` is the solver's, and outlives this.
  explicit test_phases(const solver_setup& setup) : setup_(setup), completed_(setup.test_phases) {}

  /// Whether the solver's file asks for a phase at this boundary, and there has been none.
  [[nodiscard]] bool due(std::uint64_t clock) const;
  /// Begins with net `net` of `nets`, and shows how far it is.
  void begin(std::size_t net, const std::vector<solver_net>& nets);
  [[nodiscard]] std::size_t net() const { return net_; }

  struct pass {
    std::uint32_t index = 0;
    std::uint64_t first_sample = 0;
  };
  /// The next pass that may start on this replica now.
  [[nodiscard]] std::optional<pass> start(std::uint64_t replica);
  void issued(std::uint64_t replica, std::size_t data_layers) { now_.issued(replica, data_layers); }
  void computed(std::uint64_t replica, std::size_t first, const std::vector<float>& values);
  [[nodiscard]] bool finished() const { return now_.finished(); }
  /// What the net under test has found.
  [[nodiscard]] frames::worker_report report(std::uint64_t clock, std::uint64_t images) const;

  /// All nets have been tested.
  void complete(std::uint64_t clock);
  /// No further pass starts; it is finished when those under way are.
  void give_up();
  [[nodiscard]] bool given_up() const { return given_up_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  /// Those at this boundary and at later ones are done again.
  void go_back(std::uint64_t clock);
  /// There was one at this boundary.
  [[nodiscard]] bool completed_at(std::uint64_t clock) const {
    return !clocks_.empty() && clocks_.back() == clock;
  }
  /// Without a phase at this boundary: whoever resumes a snapshot of this clock runs that again.
  [[nodiscard]] std::uint64_t completed_before(std::uint64_t clock) const {
    return completed_ - (completed_at(clock) ? 1 : 0);
  }

 private:
  void show(bool one_of_several);

  const solver_setup& setup_;
  std::size_t net_ = 0;
  test_share share_;
  test_progress now_;
  bool given_up_ = false;
  std::shared_ptr<std::atomic<std::uint64_t>> passes_;  // computed
  std::shared_ptr<void> shown_;
  std::deque<std::uint64_t> clocks_;  // of the last complete phases
  std::uint64_t completed_;
};

}  // namespace poseidon
