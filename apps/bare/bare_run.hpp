// apps/bare/bare_run.hpp
//
// A run without actors: the same nets, first values, samples, kernels and updates as in a training on one node, called
// one after the other in one thread per replica. For `poseidon-node time` and `test`, and as the measure for actors.
#pragma once
#include "actors/run/compiled_run.hpp"
#include "actors/run/run_definition.hpp"
#include "apps/bare/batch_reader.hpp"

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace poseidon::app {

/// CPU seconds of the first replica's thread in one layer, since the last reset_times(). On an asynchronous device: the
/// seconds until the layer's kernels had finished, with no other layer's kernels running at the same time.
struct layer_seconds {
  double forward = 0, backward = 0;
  reorder_count reorders;  ///< forward and backward
};

class bare_run {
 public:
  /// One worker, one micro-batch. With a train net of phase TEST nothing is learned.
  /// `display` shows the progress.   Errors   compile_run()'s.
  bare_run(const run_definition& run, const node_spec& node, const std::filesystem::path& weights,
           const task_display& display = {});

  /// Runs `iterations`: forward, and in phase TRAIN backward and update.
  /// Errors   what a source or a kernel throws; the run cannot be used after that.
  void iterate(std::uint64_t iterations);

  /// Called by every replica's thread after each forward pass (iteration, replica). May be empty.
  std::function<void(std::uint64_t, std::uint32_t)> after_forward;
  /// Called by the first replica's thread after each iteration. May be empty.
  std::function<void()> after_iteration;
  bool timed = false;  ///< each layer then waits for an asynchronous device

  [[nodiscard]] const compiled_run& compiled() const { return *run_; }
  [[nodiscard]] const device& compute() const { return *node_.compute; }
  [[nodiscard]] const std::vector<layer_seconds>& times() const { return times_; }
  /// CPU seconds in which the first replica's thread updated parameters. On an asynchronous device: all seconds, with
  /// those of copying gradients to the host where the host makes the updates.
  [[nodiscard]] double update_seconds() const { return update_seconds_; }
  void reset_times();

 private:
  void lane(std::uint32_t replica, std::uint64_t iterations, std::barrier<>& all);
  /// One direction of layer l, timed into `sum`; a timed pass then waits for an asynchronous device.
  template <class F>
  void execute(std::uint32_t replica, std::size_t l, const F& compute, double layer_seconds::*sum);
  [[nodiscard]] reorder_count reorders_if_timed(std::uint32_t replica) const;
  void add_reorders(std::uint32_t replica, const reorder_count& before, layer_seconds& to);
  void forward(std::uint32_t replica, const pass& p);
  void backward(std::uint32_t replica, const pass& p);
  void update(std::uint32_t replica, std::uint64_t iteration);
  void update_there(std::size_t parameter, std::uint64_t iteration);

  run_definition spec_;
  node_spec node_;
  // A data layer's batch stays alive until the next one is fed, or the replica has ended.
  std::vector<std::vector<std::shared_ptr<const batch>>> fed_;
  std::unique_ptr<compiled_run> run_;
  solver_rule rule_;
  std::vector<std::vector<std::vector<float>>> history_;             // by parameter, then slot
  std::vector<std::vector<std::unique_ptr<batch_reader>>> readers_;  // by replica, then data layer
  std::vector<layer_seconds> times_;
  double update_seconds_ = 0;
  std::uint64_t iteration_ = 0;
  std::atomic<bool> failed_{false};
};

}  // namespace poseidon::app
