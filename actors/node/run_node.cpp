#include "actors/node/run_node.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace poseidon {

namespace {

constexpr std::chrono::seconds shutdown_patience{10}, failure_patience{2};

struct address {
  std::mutex mutex;
  handle<node> to;
};

/// The actor system's destructor waits for every actor; one that hangs, or that could not be spawned whole because there was
/// no memory for its thread, must not hang the process for ever. Made before anything can fail.
class end_watchdog {
 public:
  end_watchdog() : thread_([this] { run(); }) {}
  ~end_watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  end_watchdog(const end_watchdog&) = delete;
  end_watchdog& operator=(const end_watchdog&) = delete;

  /// From now on the process has so long to end; then it exits with `exit_code`, after `error` if there is one.
  void count_down(std::chrono::seconds patience, int exit_code, const char* error = "") {
    {
      const std::lock_guard lock(mutex_);
      patience_ = patience;
      exit_code_ = exit_code;
      std::snprintf(error_, sizeof error_, "%s", error);
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || patience_.count() > 0; });
    if (over_ || changed_.wait_for(lock, patience_, [this] { return over_; })) return;
    if (error_[0] != 0)
      std::fprintf(stderr, "error: %s\n", error_);
    else
      std::fprintf(stderr,
                   "internal error: actors still run %lld s after the end; giving up on them.\n",
                   static_cast<long long>(patience_.count()));
    _exit(exit_code_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::seconds patience_{0};
  int exit_code_ = 1;
  char error_[1024] = {};  // there may be no memory when it is needed
  bool over_ = false;
  std::thread thread_;
};

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

node_result run_node(node_setup setup, const signal_hook& signals) {
  end_watchdog watchdog;
  prepare(setup);
  std::promise<node_result> ended;
  setup.ended = [&](node_result r) { ended.set_value(std::move(r)); };

  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  const auto stop = std::make_shared<wake_up>();
  setup.cluster.stop = stop;
  // Handlers take microseconds; a second worker on few cores mostly wakes and interrupts (a third fewer context
  // switches with one, measured with LeNet on two cores).
  config.set("scheduler.max-threads", std::size_t{1 + std::thread::hardware_concurrency() / 16});
  config.set("logger.console", caf::atom("none"));
  node_result result;  // before the system: what it holds outlives the last actor
  caf::actor_system system(config);
  const auto edges = setup.edges;  // outlive the actors that count and record into them
  const auto trace = setup.records.trace;
  try {
    auto the_node = spawn<node>(system, *edges, thread_kind::own, "node", std::move(setup));
    // The signal thread may outlive the node: it gets an address that is emptied, not a reference.
    const auto reachable = std::make_shared<address>();
    reachable->to = the_node;
    if (signals)
      signals([=](interrupted what) {
        const std::lock_guard lock(reachable->mutex);
        if (!reachable->to) return;
        tell_from_outside(reachable->to, what);
        // It may be waiting for an answer instead of looking at its mailbox.
        if (!what.snapshot) stop->set();
      });
    tell_from_outside(the_node, start_node{});
    result = ended.get_future().get();
    the_node = {};
    {
      const std::lock_guard lock(reachable->mutex);
      reachable->to = {};
    }
    watchdog.count_down(shutdown_patience, result.exit_code != 0 ? result.exit_code : 1,
                        result.error.c_str());
    system.await_all_actors_done();
  } catch (const std::exception& e) {
    watchdog.count_down(failure_patience, 1, e.what());
    throw;  // through the system's destructor
  }
  return result;
}

}  // namespace poseidon
