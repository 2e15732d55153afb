// actors/training/run_goals.hpp
//
// What the leader's solver does with the values that tests find: whether a model is the best so far (keep_best), and whether
// it is good enough to end (stop_at). A part of `solver`, without a mailbox.
#pragma once
#include "actors/training/solver_setup.hpp"
#include "models/solver/goals.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poseidon {

/// A test phase of one net, with the values of all nodes.
struct test_found {
  std::size_t net = 0;
  std::uint64_t clock = 0;
  std::vector<double> means;
  std::vector<output_value> outputs;
};

class run_goals {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  run_goals() = default;
  explicit run_goals(const ::caffe::SolverParameter& solver);

  /// Whether the first boundary after a test waits for verdict().
  [[nodiscard]] bool any() const { return best_ || stop_; }
  /// Training begins: the time to reach a goal is counted from here.
  void begin(time_point now) { began_ = now; }
  void take(const test_found& t, time_point now);

  struct answer {
    bool best = false;   ///< the model of this clock is to be kept
    std::string note;    ///< for the user; empty: nothing
    std::string enough;  ///< why training ends; empty: it goes on
  };
  /// Of the tests before `clock`; empty until all nodes have reported those that the goals need.
  [[nodiscard]] std::optional<answer> verdict(std::uint64_t clock) const;

 private:
  struct goal {
    output_goal wants;
    std::optional<std::uint64_t> clock;  // of the newest value
    double value = 0;
    bool less = false;  // is better
    [[nodiscard]] bool take(const test_found& t);
  };

  std::uint64_t iterations_ = 1;  // of a clock
  std::optional<goal> best_, stop_;
  std::optional<double> best_value_;
  answer answer_;
  time_point began_;
};

}  // namespace poseidon
