// apps/poseidon_node.cpp - one node of a cluster: options, wiring, exit code. What it does: actors/node.hpp.
#include "actors/node.hpp"
#include "apps/node/console.hpp"
#include "apps/node/options.hpp"
#include "cpu/cpu_device.hpp"
#include "models/snapshot.hpp"
#include "models/solver_file.hpp"

#include <caf/actor_system_config.hpp>

#include <csignal>
#include <cstdio>
#include <future>
#include <thread>
#include <unistd.h>

namespace poseidon::app {

namespace {

constexpr std::chrono::seconds shutdown_patience{10};

run_spec read_run(const node_options& o) {
  run_spec run;
  run.solver = read_solver(o.solver);
  run.workers = o.nodes;
  if (o.seed_given)
    run.seed = o.seed;
  else if (run.solver.spec.random_seed() >= 0)
    run.seed = static_cast<std::uint64_t>(run.solver.spec.random_seed());
  return run;
}

node_setup setup_of(const node_options& o, std::shared_ptr<progress> display) {
  node_setup s;
  if (!o.join) s.run = read_run(o);
  s.node.compute = make_cpu_device();
  s.node.replicas = o.replicas;
  s.node.data_root = o.data_root;
  s.listen = o.listen;
  s.join = o.join;
  s.token = o.token;
  s.link_mbit_s = o.link_mbit_s;
  s.weights = o.weights;
  s.resume = o.snapshot;
  s.trace_file = o.trace;
  s.graph_file = o.graph;
  s.display = std::move(display);
  s.edges = std::make_shared<edge_book>();
  s.trace = std::make_shared<trace_log>(!o.trace.empty());
  s.stop_requested = std::make_shared<std::atomic<bool>>(false);
  return s;
}

/// Turns SIGINT and SIGTERM into messages; a second one ends the process at once. Every thread inherits
/// the mask, so this must stand before the first thread is started.
class signal_thread {
 public:
  signal_thread() {
    sigemptyset(&set_);
    for (const int s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set_, s);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void run(std::function<void(int)> first) {
    thread_ = std::thread([this, first = std::move(first)] {
      for (int seen = 0;; ++seen) {
        int signal = 0;
        sigwait(&set_, &signal);
        if (signal == SIGUSR1) return;
        if (seen > 0) _exit(128 + signal);
        first(signal);
      }
    });
  }
  ~signal_thread() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

 private:
  sigset_t set_{};
  std::thread thread_;
};

/// The system's destructor waits for every actor; one that hangs must not hang the process for ever.
void end_of(caf::actor_system& system, const node_result& result) {
  std::promise<void> over;
  std::thread watchdog([&, ended = over.get_future()] {
    if (ended.wait_for(shutdown_patience) == std::future_status::ready) return;
    std::fprintf(stderr, "internal error: actors still run %lld s after the end; giving up on them.\n",
                 static_cast<long long>(shutdown_patience.count()));
    _exit(result.exit_code != 0 ? result.exit_code : 1);
  });
  system.await_all_actors_done();
  over.set_value();
  watchdog.join();
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  signal_thread signals;
  const auto level = options.log_level == "quiet" ? verbosity::quiet
                     : options.log_level == "debug" ? verbosity::debug
                                                    : verbosity::info;
  auto setup = setup_of(options, std::make_shared<console>(level));
  std::promise<node_result> ended;
  setup.ended = [&](node_result r) { ended.set_value(std::move(r)); };

  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{2});
  config.set("logger.console", caf::atom("none"));
  node_result result;
  {
    caf::actor_system system(config);
    const auto stop = setup.stop_requested;
    auto edges = setup.edges;
    auto the_node = spawn<node>(system, *edges, thread_kind::own, "node", std::move(setup));
    signals.run([&](int signal) {
      stop->store(true);
      tell_from_outside(the_node, interrupted{signal});
    });
    tell_from_outside(the_node, start_node{});
    result = ended.get_future().get();
    the_node = {};
    end_of(system, result);
  }
  if (!result.error.empty()) std::fprintf(stderr, "%s\n", result.error.c_str());
  return result.exit_code;
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  try {
    return poseidon::app::run(argc, argv);
  } catch (const poseidon::app::wrong_use& e) {
    return e.exit_code;
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
