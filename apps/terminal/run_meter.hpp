// apps/terminal/run_meter.hpp - a run's speed from its reports: rates, the hidden share of communication, the time left.
#pragma once
#include "actors/core/pause_meter.hpp"
#include "actors/core/progress.hpp"
#include "apps/terminal/pace.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace poseidon::app {

/// Not thread-safe; times are handed in.
class run_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `nodes`: number of nodes in the cluster; a single node has no network.
  explicit run_meter(std::size_t nodes) : nodes_(nodes) {}

  void stepped(const progress::step& s, time_point now);
  /// What lies between is left out of all figures: test phases. Pauses may overlap.
  void pause_begins(time_point now) { pauses_.begin(now); }
  void pause_ends(time_point now);

  struct traffic {
    double out_per_s = 0, in_per_s = 0;  ///< bytes on this node's links
  };
  struct interval {
    double images_s = 0;           ///< of all nodes together
    std::optional<double> hidden;  ///< share of the communication time during which kernels ran
    std::optional<traffic> net;
    std::optional<double> left_s;        ///< without pauses
    std::optional<double> tests_left_s;  ///< pauses to come; none before the first
  };
  /// Rates since the previous call; the run begins with the first step.
  [[nodiscard]] interval trained(const progress::iteration& i, time_point now);

  /// Rates of the newest iterations, on this node.
  [[nodiscard]] bool begun() const { return iterations_.begun(); }
  [[nodiscard]] const progress::step& newest() const { return newest_; }
  [[nodiscard]] std::optional<double> left_s(time_point now) const;
  /// Assumes that pauses keep their share of the time.
  [[nodiscard]] std::optional<double> tests_left_s(time_point now) const;
  [[nodiscard]] std::optional<double> images_s() const { return images_.per_s(); }
  [[nodiscard]] std::optional<traffic> net() const;
  /// Seconds since the last iteration, if they exceed two seconds and the usual time in this run.
  [[nodiscard]] std::optional<double> waiting_s(time_point now) const;

 private:
  std::size_t nodes_;
  progress::step newest_;
  pace iterations_;
  pace images_{std::chrono::seconds{10}}, out_{std::chrono::seconds{10}},
      in_{std::chrono::seconds{10}};
  pause_meter pauses_;
  /// The end of the first iteration, and of the last interval, each with all pauses until then.
  struct moment {
    time_point when;
    pause_meter::duration paused{};
  };
  [[nodiscard]] moment moment_at(time_point now) const { return {now, pauses_.paused(now)}; }
  std::optional<moment> first_iteration_, shown_;
  double images_s_ = 0;
  std::uint64_t images_shown_ = 0, communication_shown_ = 0, exposed_shown_ = 0;
  std::uint64_t out_shown_ = 0, in_shown_ = 0;
};

}  // namespace poseidon::app
