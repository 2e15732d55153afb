// apps/terminal/run_meter.hpp - what a run's reports say about its speed: rates, the share that is hidden, the time left.
#pragma once
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

  /// `nodes`: of the cluster; one that is alone has no network.
  explicit run_meter(std::size_t nodes) : nodes_(nodes) {}

  void stepped(const progress::step& s, time_point now);
  /// No iteration has ended for so long, because something else was done: a test phase.
  void stood_aside(time_point since, time_point until);

  struct traffic {
    double out_per_s = 0, in_per_s = 0;  ///< bytes on this node's links
  };
  struct interval {
    double images_s = 0;           ///< of all nodes
    std::optional<double> hidden;  ///< share of the communication that nobody waited for
    std::optional<traffic> net;
    std::optional<double> left_s;
  };
  /// Of the time since the call before; the run begins with the first step.
  [[nodiscard]] interval trained(const progress::iteration& i, time_point now);

  /// The newest iterations, on this node.
  [[nodiscard]] bool begun() const { return iterations_.begun(); }
  [[nodiscard]] const progress::step& newest() const { return newest_; }
  [[nodiscard]] std::optional<double> left_s(time_point now) const;
  [[nodiscard]] std::optional<double> images_s() const { return images_.per_s(); }
  [[nodiscard]] std::optional<traffic> net() const;
  /// Seconds since the last iteration, if that is longer than usual in this run and than two seconds.
  [[nodiscard]] std::optional<double> waiting_s(time_point now) const;

 private:
  std::size_t nodes_;
  progress::step newest_;
  pace iterations_;
  pace images_{std::chrono::seconds{10}}, out_{std::chrono::seconds{10}},
      in_{std::chrono::seconds{10}};
  std::optional<time_point> first_iteration_;
  std::chrono::steady_clock::duration aside_{};  // since the first iteration
  std::optional<time_point> shown_;              // the last interval's end
  std::uint64_t images_shown_ = 0, communication_shown_ = 0, exposed_shown_ = 0;
  std::uint64_t out_shown_ = 0, in_shown_ = 0;
};

}  // namespace poseidon::app
