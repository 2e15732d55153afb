// apps/poseidon_node.cpp - one node of a cluster: options, wiring, exit code. What it does: actors/node.hpp.
#include "actors/run_node.hpp"
#include "apps/node/console.hpp"
#include "apps/node/options.hpp"
#include "apps/node/signals.hpp"
#include "apps/run_app.hpp"
#include "cpu/cpu_device.hpp"
#include "models/snapshot.hpp"
#include "models/solver_file.hpp"

#include <cstdio>

namespace poseidon::app {

namespace {

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

node_setup setup_of(const node_options& o) {
  node_setup s;
  s.weights = o.weights;
  if (!o.join) s.run = read_run(o);
  if (!o.snapshot.empty()) {
    const auto head = read_resume_point(o.snapshot);
    s.run->first_clock = head.iteration;
    s.weights = head.learned_net;
    s.resume = o.snapshot;
  }
  s.node.compute = make_cpu_device();
  s.node.replicas = o.replicas;
  s.node.data_root = o.data_root;
  s.listen = o.listen;
  s.join = o.join;
  s.token = o.token;
  s.link_mbit_s = o.link_mbit_s;
  s.trace_file = o.trace;
  s.graph_file = o.graph;
  s.display = std::make_shared<console>(verbosity_of(o.log_level));
  return s;
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;  // --help, --version
  signal_thread signals;
  const auto result =
      run_node(setup_of(*options), [&](auto tell) { signals.run(std::move(tell)); });
  if (!result.error.empty()) std::fprintf(stderr, "%s\n", result.error.c_str());
  return result.exit_code;
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  return poseidon::app::run_app(argc, argv, poseidon::app::run);
}
