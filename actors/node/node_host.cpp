#include "actors/node/node_host.hpp"

#include <caf/atom.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace poseidon {

namespace {

/// Where CAF cannot start one of its threads, the actor system dies of SIGSEGV while it takes down what it has begun. So as many
/// are tried first.
/// Errors   std::system_error.
void require_threads(std::size_t count) {
  std::vector<std::jthread> tried;  // joins them, when `gate` has gone and let them through
  std::promise<void> gate;
  const auto open = gate.get_future().share();
  while (tried.size() < count) tried.emplace_back([open] { open.wait(); });
}

}  // namespace

void prepare(node_setup& setup) {
  if (!setup.edges) setup.edges = std::make_shared<edge_book>();
  if (!setup.records.trace)
    setup.records.trace =
        std::make_shared<trace_log>(!setup.records.trace_file.empty(), setup.records.shows);
  if (!setup.records.view) {
    const auto nodes = setup.run ? setup.run->workers : 2;  // a joiner is never alone
    const auto history = std::make_shared<run_history>(setup.display, nodes);
    setup.records.view = std::make_shared<cluster_view>(setup.edges, setup.records.trace, history);
    setup.records.view->set_silence_limit(setup.cluster.silence_limit);
    setup.display = history;
  }
}

node_host::config::config() {
  set("scheduler.policy", caf::atom("sharing"));
  // Handlers take microseconds; a second worker on few cores mostly wakes and interrupts (a third fewer context
  // switches with one, measured with LeNet on two cores).
  const std::size_t workers = 1 + std::thread::hardware_concurrency() / 16;
  require_threads(workers + 5);  // CAF's others, and the first actors that have one of their own
  set("scheduler.max-threads", workers);
  set("logger.console", caf::atom("none"));
}

void node_host::start(node_setup setup) {
  prepare(setup);
  edges_ = setup.edges;
  trace_ = setup.records.trace;
  setup.cluster.stop = stop_;
  setup.ended = [this, also = std::move(setup.ended)](node_result r) {
    if (also) also(r);
    promise_.set_value(std::move(r));
  };
  // A thread in which a system is made, or an actor spawned, refers to the system's logger until it ends, and the system's end waits for
  // that. The caller's thread may outlive the run, which any thread may end.
  std::async(std::launch::async, [&] { spawn_in_system(std::move(setup)); }).get();
}

void node_host::spawn_in_system(node_setup setup) {
  system_ = std::make_unique<caf::actor_system>(config_);
  if (setup.cluster.as_witness) {
    witness_ = spawn<witness>(*system_, *edges_, thread_kind::own, "witness", std::move(setup));
    return tell_from_outside(witness_, start_node{});
  }
  node_ = spawn<node>(*system_, *edges_, thread_kind::own, "node", std::move(setup));
  tell_from_outside(node_, start_node{});
}

void node_host::tell(interrupted what) {
  const std::lock_guard lock(mutex_);
  if (!node_ && !witness_) return;
  node_ ? tell_from_outside(node_, what) : tell_from_outside(witness_, what);
  // It may be waiting for an answer instead of looking at its mailbox.
  if (!what.snapshot) stop_->set();
}

void node_host::give_up(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!node_) return;
  tell_from_outside(node_, training_failed{why, 1});
  stop_->set();
}

std::optional<node_result> node_host::ended(std::chrono::duration<double> limit) {
  const auto most = std::chrono::duration<double>(1e8);  // years would overflow the clock
  if (result_.wait_for(std::min(limit, most)) != std::future_status::ready) return std::nullopt;
  forget_node();
  return result_.get();
}

node_result node_host::ended() {
  result_.wait();
  forget_node();
  return result_.get();
}

/// A handle is a reference: the node's actor lives as long as there is one.
void node_host::forget_node() {
  const std::lock_guard lock(mutex_);
  node_ = {};
  witness_ = {};
}

}  // namespace poseidon
