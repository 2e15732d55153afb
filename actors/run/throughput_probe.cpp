#include "actors/run/throughput_probe.hpp"

#include "actors/run/compile_run.hpp"
#include "actors/run/pass_loop.hpp"
#include "actors/run/train_net.hpp"
#include "data/batch_filler.hpp"
#include "models/net/sample_mean.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

namespace poseidon {

namespace {

using clock = std::chrono::steady_clock;

constexpr int least_passes = 3, most_passes = 30;
constexpr std::chrono::milliseconds enough{300};

/// A single-worker run of this node, with the train net only.
run_definition alone(const run_definition& run, const node_share& share) {
  auto out = run;
  out.workers = 1;
  out.shares = {share};
  out.routes.clear();
  out.wire.clear();
  auto& s = out.solver;
  s.spec.mutable_poseidon()->set_staleness(0);
  s.spec.set_debug_info(false);
  s.spec.set_iter_size(1);
  s.test_nets.clear();
  s.test_states.clear();
  return out;
}

class pass_timer {
 public:
  /// `batches` lives as long as the replica, which may still read it when a pass has failed.
  pass_timer(compiled_run& run, device& compute, std::uint64_t seed, std::uint32_t replica,
             std::vector<batch>& batches)
      : net_(run.train),
        compute_(compute),
        copy_(*net_.replicas[replica]),
        replica_(replica),
        batches_(batches) {
    pass_.seed = seed;
    for (std::uint32_t r = 0; r < replica; ++r) pass_.first_sample += net_.batch_of(r);
    for (const auto& source : net_.sources)
      fill_batch(*source, pass_.first_sample, static_cast<std::int64_t>(net_.batch_of(replica)),
                 batches_.emplace_back());
  }

  /// Samples per second of the fastest pass: other passes may have been disturbed.
  double samples_s() {
    compute_.arithmetic()->enter_thread(1);
    forward_and_backward();  // fills caches
    auto best = clock::duration::max();
    const auto begin = clock::now();
    for (int i = 0; i < least_passes || (i < most_passes && clock::now() - begin < enough); ++i) {
      const auto before = clock::now();
      forward_and_backward();
      best = std::min(best, clock::now() - before);
    }
    const auto seconds = std::max(std::chrono::duration<double>(best).count(), 1e-9);
    return static_cast<double>(net_.batch_of(replica_)) / seconds;
  }

 private:
  void forward_and_backward() {
    const auto execute = [](std::size_t, const auto& compute) { compute(); };
    pass_loop loop(net_.graph, copy_);
    for (std::size_t d = 0; d < net_.data_layers.size(); ++d)
      loop.feed(net_.data_layers[d], batches_[d]);
    loop.forward(pass_, execute);
    loop.backward(pass_, execute);
    if (compute_.is_asynchronous()) copy_.finish();
  }

  compiled_net& net_;
  device& compute_;
  replica& copy_;
  std::uint32_t replica_;
  pass pass_;
  std::vector<batch>& batches_;
};

double measured(const run_definition& run, const node_spec& node, const task_display& display) {
  std::vector<std::vector<batch>> batches;
  const auto compiled = compile_run(run, node, display);
  batches.resize(compiled->replicas);
  const auto shown = show(display, {"timing the net", 0, {}});
  const auto& n = compiled->train.graph;
  write_first_values(n, run.seed, {}, 0, *compiled->store);
  for (const auto p : compiled->store->parameters()) compiled->store->publish(p, 0);
  std::vector<double> rates(compiled->replicas);
  std::vector<std::exception_ptr> errors(compiled->replicas);
  const auto time_one = [&](std::uint32_t r) {
    try {
      rates[r] = pass_timer(*compiled, *node.compute, run.seed, r, batches[r]).samples_s();
    } catch (...) {
      errors[r] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::uint32_t r = 1; r < compiled->replicas; ++r) others.emplace_back(time_one, r);
    time_one(0);
  }
  double sum = 0;
  for (std::uint32_t r = 0; r < compiled->replicas; ++r) {
    if (errors[r]) std::rethrow_exception(errors[r]);
    sum += rates[r];
  }
  return sum;
}

}  // namespace

void require_shares(const run_definition& run, const node_spec& node) {
  require_sample_means(resolve_train_net(run, node).part);
}

double pass_s_of(const run_definition& run, const node_spec& node, const task_display& display) {
  const auto n = resolve_train_net(run, node).part;
  const auto time_scale = run.solver.spec.poseidon().replay().time_scale();
  if (const auto told = node.compute->told_pass_s(n, time_scale)) return *told;
  const auto batch = batch_of(n);
  return static_cast<double>(batch) /
         measured(alone(run, {batch, std::min<std::uint32_t>(replicas_of(node, batch), batch)}),
                  node, display);
}

node_speed speed_of(const run_definition& run, const node_spec& node, bool measure,
                    const task_display& display) {
  if (node.own_data)
    throw spec_error(
        "--own-data does not go with --batch-share: a node with a larger share would go through "
        "its own part of the data faster than the others through theirs, and show its records "
        "more often. Give every node all of the data, or leave the shares equal.");
  const auto n = resolve_train_net(run, node).part;
  node_speed speed;
  speed.batch = batch_of(n);
  speed.replicas = replicas_of(node, speed.batch);
  if (speed.batch < speed.replicas)
    throw spec_error("the net's batch of " + std::to_string(speed.batch) +
                     " is too small for the " + std::to_string(speed.replicas) +
                     " replicas of this node, which need at least one sample each. Choose a larger "
                     "batch_size, or fewer replicas with --devices.");
  if (!measure) return speed;
  const auto pass_s = pass_s_of(run, node, display);
  if (pass_s <= 0)
    throw spec_error(
        "the profile has no times for the layers of this net, so the speed of this node is "
        "unknown. Give weights in place of --batch-share auto.");
  speed.samples_s = static_cast<double>(speed.batch) / pass_s;
  return speed;
}

}  // namespace poseidon
