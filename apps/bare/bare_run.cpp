#include "apps/bare/bare_run.hpp"

#include "actors/run/compile_run.hpp"
#include "actors/run/pass_loop.hpp"
#include "models/solver/solver_file.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <mutex>
#include <thread>

namespace poseidon::app {

namespace {

double thread_cpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Adds the time between its construction and its destruction to a sum, if that is not null: CPU time of the thread, or
/// all time.
class stopwatch {
 public:
  explicit stopwatch(double* sum, double (*clock)() = thread_cpu)
      : sum_(sum), clock_(clock), begin_(sum != nullptr ? clock() : 0) {}
  ~stopwatch() {
    if (sum_ != nullptr) *sum_ += clock_() - begin_;
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;

 private:
  double* sum_;
  double (*clock_)();
  double begin_;
};

/// Waits for results that have been requested from an asynchronous device.
class arrivals {
 public:
  arrivals() = default;
  arrivals(const arrivals&) = delete;
  arrivals& operator=(const arrivals&) = delete;
  ~arrivals() { until_all(); }

  /// To be called when one more result has arrived.
  completion one_more() {
    const std::lock_guard lock(mutex_);
    ++missing_;
    return [this](std::exception_ptr failed) {
      const std::lock_guard lock(mutex_);
      if (failed && !failed_) failed_ = std::move(failed);
      if (--missing_ == 0) changed_.notify_all();
    };
  }
  /// Errors   the first error that a result ended with.
  void wait() {
    until_all();
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  void until_all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return missing_ == 0; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t missing_ = 0;
  std::exception_ptr failed_;
};

/// Returns when `r` has finished all kernels that have been queued. Gradients stay on the device.
void wait_for(replica& r) {
  const auto results = r.fetch({});
  arrivals computed;
  results->when_here(computed.one_more());
  computed.wait();
}

}  // namespace

bare_run::bare_run(const run_definition& run, const node_spec& node,
                   const std::filesystem::path& weights, const task_display& display)
    : spec_(run), node_(node) {
  spec_.workers = 1;
  // The device makes the updates that it would make in a single-worker training. The host adds several replicas.
  node_.joins_gradients = run.solver.train_state.phase == ::caffe::TRAIN &&
                          (node.replicas != 0 ? node.replicas : node.compute->replicas()) == 1;
  spec_.solver.spec.set_iter_size(1);
  spec_.solver.spec.mutable_poseidon()->clear_outer_steps();
  run_ = compile_run(spec_, node_, display);
  rule_ = rule_of(spec_.solver.spec);
  const auto& n = run_->train.graph;
  std::vector<std::filesystem::path> files;
  if (!weights.empty()) files.push_back(weights);
  {
    std::shared_ptr<void> reading;
    if (!weights.empty()) reading = show(display, {"reading " + weights.string(), 0, {}});
    write_first_values(n, spec_.seed, files, 0, *run_->store);
  }
  for (const auto p : run_->store->parameters()) run_->store->publish(p, 0);
  for (const auto& p : n.parameters)
    history_.emplace_back(history_count(rule_.kind),
                          std::vector<float>(static_cast<std::size_t>(count(p.shape))));
  for (std::uint32_t r = 0; r < run_->replicas; ++r) {
    auto& readers = readers_.emplace_back();
    for (const auto& source : run_->train.sources)
      readers.push_back(std::make_unique<batch_reader>(
          source,
          [r, replicas = run_->replicas, batch = run_->train.batch](std::uint64_t pass) {
            return (pass * replicas + r) * batch;
          },
          run_->train.batch, node_.compute->host_memory(), run_->readers));
  }
  fed_.resize(run_->replicas);
  for (auto& f : fed_) f.resize(run_->train.sources.size());
  reset_times();
}

void bare_run::reset_times() {
  times_.assign(run_->train.graph.layers.size(), {});
  update_seconds_ = 0;
}

void bare_run::iterate(std::uint64_t iterations) {
  std::barrier<> all(run_->replicas);
  std::vector<std::exception_ptr> errors(run_->replicas);
  const auto guarded_lane = [&](std::uint32_t r) {
    try {
      lane(r, iterations, all);
    } catch (...) {
      errors[r] = std::current_exception();
      // Set before the other lanes pass the barrier, so that all see it in the same iteration.
      failed_ = true;
      all.arrive_and_drop();
    }
  };
  std::vector<std::jthread> lanes;
  for (std::uint32_t r = 1; r < run_->replicas; ++r) lanes.emplace_back(guarded_lane, r);
  guarded_lane(0);
  lanes.clear();
  for (const auto& e : errors)
    if (e) std::rethrow_exception(e);
  iteration_ += iterations;
}

void bare_run::lane(std::uint32_t replica, std::uint64_t iterations, std::barrier<>& all) {
  node_.compute->arithmetic()->enter_thread(1);
  const auto batch = run_->train.batch;
  const bool learns = run_->train.graph.phase == ::caffe::TRAIN;
  for (auto i = iteration_; i < iteration_ + iterations && !failed_; ++i) {
    const pass p{i, (i * run_->replicas + replica) * batch, spec_.seed,
                 run_->replicas - 1 - replica};
    forward(replica, p);
    if (after_forward) after_forward(i, replica);
    if (!learns) {
      if (after_iteration && replica == 0) after_iteration();
      continue;
    }
    backward(replica, p);
    all.arrive_and_wait();
    update(replica, i);
    all.arrive_and_wait();
    if (replica == 0)
      for (const auto q : run_->store->parameters())
        if (is_updated(run_->train.graph, value(q))) run_->store->publish(q, i + 1);
    if (after_iteration && replica == 0) after_iteration();
    all.arrive_and_wait();
  }
}

reorder_count bare_run::reorders_if_timed(std::uint32_t replica) const {
  return timed && replica == 0 ? run_->train.replicas[0]->reorders() : reorder_count{};
}

void bare_run::add_reorders(std::uint32_t replica, const reorder_count& before, layer_seconds& to) {
  if (!timed || replica != 0) return;
  const auto after = run_->train.replicas[0]->reorders();
  to.reorders.copies += after.copies - before.copies;
  to.reorders.bytes += after.bytes - before.bytes;
}

template <class F>
void bare_run::execute(std::uint32_t replica, std::size_t l, const F& compute,
                       double layer_seconds::*sum) {
  auto& copy = *run_->train.replicas[replica];
  const bool is_asynchronous = node_.compute->is_asynchronous();
  const stopwatch watch(timed && replica == 0 ? &(times_[l].*sum) : nullptr,
                        is_asynchronous ? wall : thread_cpu);
  const auto before = reorders_if_timed(replica);
  compute();
  if (timed && is_asynchronous) copy.finish_kernels();  // wait_for() may return up to 0.1 ms late
  add_reorders(replica, before, times_[l]);
}

void bare_run::forward(std::uint32_t replica, const pass& p) {
  auto& net = run_->train;
  pass_loop loop(net.graph, *net.replicas[replica]);
  for (std::size_t d = 0; d < net.data_layers.size(); ++d) {
    auto next = readers_[replica][d]->next();
    loop.feed(net.data_layers[d], *next);
    fed_[replica][d] = std::move(next);
  }
  loop.forward(p, [&](std::size_t l, const auto& compute) {
    execute(replica, l, compute, &layer_seconds::forward);
  });
  // Until here the work was only queued. In phase TRAIN the backward pass follows immediately.
  if (node_.compute->is_asynchronous() && net.graph.phase == ::caffe::TEST)
    wait_for(*net.replicas[replica]);
}

void bare_run::backward(std::uint32_t replica, const pass& p) {
  auto& net = run_->train;
  auto& copy = *net.replicas[replica];
  const bool is_asynchronous = node_.compute->is_asynchronous();
  arrivals gradients;
  pass_loop(net.graph, copy).backward(p, [&](std::size_t l, const auto& compute) {
    execute(replica, l, compute, &layer_seconds::backward);
    if (!is_asynchronous || timed || net.graph.layers[l].parameters.empty()) return;
    const auto arrived = gradients.one_more();
    try {
      copy.bring_gradients(l, arrived);
    } catch (...) {
      // The device calls it only where bring_gradients() returns.
      arrived(std::current_exception());
    }
  });
  if (!is_asynchronous) return;
  if (!timed) {  // as in a training: gradients are copied to the host while the layers below are computed
    wait_for(copy);
    return gradients.wait();
  }
  const stopwatch watch(replica == 0 ? &update_seconds_ : nullptr, wall);
  copy.finish();
}

/// Each replica's thread updates its part of every parameter, with all replicas' gradients added in their order.
void bare_run::update(std::uint32_t replica, std::uint64_t iteration) {
  const stopwatch watch(timed && replica == 0 ? &update_seconds_ : nullptr,
                        node_.compute->is_asynchronous() ? wall : thread_cpu);
  const auto& net = run_->train;
  auto& store = *run_->store;
  const std::size_t lanes = run_->replicas;
  const auto arithmetic = node_.compute->arithmetic();
  for (const auto id : store.parameters()) {
    const std::size_t p = value(id);
    if (!is_updated(net.graph, p)) continue;
    if (run_->updates != nullptr && run_->updates->holds(p)) {
      update_there(p, iteration);
      continue;
    }
    const auto values = store.current(id);
    const auto from = values.size() * replica / lanes;
    const auto length = values.size() * (replica + 1) / lanes - from;
    const auto sum = net.replicas[0]->gradient(p).subspan(from, length);
    for (std::size_t o = 1; o < lanes; ++o)
      arithmetic->add(sum, net.replicas[o]->gradient(p).subspan(from, length));
    const auto fresh = store.values(id, iteration + 1);
    if (const auto& momentum = net.graph.parameters[p].average_momentum) {
      arithmetic->update_average(momentum_over(*momentum, lanes), sum, values.subspan(from, length),
                                 fresh.subspan(from, length));
      continue;
    }
    std::vector<state_array> history;
    for (auto& h : history_[p]) history.push_back(std::span(h).subspan(from, length));
    arithmetic->update(rule_,
                       step_of(spec_.solver.spec, net.graph.parameters[p], iteration,
                               1.0f / static_cast<float>(lanes)),
                       sum, values.subspan(from, length), fresh.subspan(from, length), history);
  }
  if (run_->updates != nullptr && timed) run_->updates->finish();
}

/// On the device of the only replica.
void bare_run::update_there(std::size_t p, std::uint64_t iteration) {
  const net_parameter& of = run_->train.graph.parameters[p];
  const parameter_part all{p, 0, static_cast<std::size_t>(count(of.shape))};
  if (of.average_momentum)
    run_->updates->update_average(all, momentum_over(*of.average_momentum, 1), iteration + 1);
  else
    run_->updates->update(all, step_of(spec_.solver.spec, of, iteration, 1), iteration + 1);
}

}  // namespace poseidon::app
