#include "actors/node/run_node.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>

#include <chrono>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace poseidon {

namespace {

constexpr std::chrono::seconds shutdown_patience{10};

struct address {
  std::mutex mutex;
  handle<node> to;
};

/// The system's destructor waits for every actor; one that hangs must not hang the process for ever.
void await_actors(caf::actor_system& system, const node_result& result) {
  std::promise<void> over;
  std::thread watchdog([&result, ended = over.get_future()] {
    if (ended.wait_for(shutdown_patience) == std::future_status::ready) return;
    std::fprintf(stderr,
                 "internal error: actors still run %lld s after the end; giving up on them.\n",
                 static_cast<long long>(shutdown_patience.count()));
    _exit(result.exit_code != 0 ? result.exit_code : 1);
  });
  system.await_all_actors_done();
  over.set_value();
  watchdog.join();
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

node_result run_node(node_setup setup, const signal_hook& signals) {
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
  await_actors(system, result);
  return result;
}

}  // namespace poseidon
