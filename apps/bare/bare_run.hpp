// apps/bare/bare_run.hpp
//
// A run without actors: the same nets, first values, samples, kernels and updates as those of one node, called
// one after the other, one thread per replica. What `poseidon-node time` and `test` do, and what actors are
// measured against.
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

/// CPU seconds of the first replica's thread in one layer, since the last reset_times(); on a device that goes on by itself
/// the seconds until its work was over and what it makes was there: each layer by itself, nothing beside it.
struct layer_seconds {
  double forward = 0, backward = 0;
  reorder_count reorders;  ///< forward and backward
};

class bare_run {
 public:
  /// One worker, one micro-batch. The train net may be of phase TEST: then nothing is learned.
  /// `display` sees how far its making is. Errors   compile_run()'s.
  bare_run(const run_definition& run, const node_spec& node, const std::filesystem::path& weights,
           const task_display& display = {});

  /// Runs that many iterations: forward, and in phase TRAIN backward and update.
  /// Errors   what a source or a kernel throws; the run cannot go on after that.
  void iterate(std::uint64_t iterations);

  /// Called by every replica's thread after each forward pass (iteration, replica). May be empty.
  std::function<void(std::uint64_t, std::uint32_t)> after_forward;
  /// Called by the first replica's thread after each iteration. May be empty.
  std::function<void()> after_iteration;
  bool timed = false;  ///< a device that goes on by itself is then waited for behind each layer

  [[nodiscard]] const compiled_run& compiled() const { return *run_; }
  [[nodiscard]] const device& compute() const { return *node_.compute; }
  [[nodiscard]] const std::vector<layer_seconds>& times() const { return times_; }
  /// CPU seconds of the first replica's thread; on a device that goes on by itself the seconds in which parameters were
  /// updated, with the gradients' way home where the host does that.
  [[nodiscard]] double update_seconds() const { return update_seconds_; }
  void reset_times();

 private:
  void lane(std::uint32_t replica, std::uint64_t iterations, std::barrier<>& all);
  using direction = void (kernel::*)(const pass&);
  /// One direction of layer l, timed into `sum`; on a device that goes on by itself it is then waited for.
  void execute(std::uint32_t replica, std::size_t l, const pass& p, direction way,
               double layer_seconds::*sum);
  [[nodiscard]] reorder_count reorders_if_timed(std::uint32_t replica) const;
  void add_reorders(std::uint32_t replica, const reorder_count& before, layer_seconds& to);
  void forward(std::uint32_t replica, const pass& p);
  void backward(std::uint32_t replica, const pass& p);
  void update(std::uint32_t replica, std::uint64_t iteration);
  void update_there(std::size_t parameter, std::uint64_t iteration);

  run_definition spec_;
  node_spec node_;
  // What a data layer was fed last stays alive until it is fed again, or its replica has ended.
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
