// apps/poseidon_node.cpp - one node of a cluster: options, wiring, exit code. The work is done in actors/node/node.hpp.
#include "actors/node/run_node.hpp"
#include "actors/routes/route_plan.hpp"
#include "apps/cli.hpp"
#include "apps/node/options.hpp"
#include "apps/node/signals.hpp"
#include "apps/node/start_checks.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/caffe_log.hpp"
#include "apps/terminal/console.hpp"
#include "apps/terminal/csv_file.hpp"
#include "apps/terminal/json_console.hpp"
#include "apps/web/live_site.hpp"
#include "apps/web/view_json.hpp"
#include "cpu/cpu_device.hpp"
#include "models/files/newest_state.hpp"
#include "models/files/snapshot.hpp"
#include "models/solver/solver_file.hpp"
#include "replay/replay_device.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace poseidon::app {

namespace {

/// Reduces a run to what sleeping kernels need: no data, no tests, no files.
void make_replay(solver_file& solver, const node_options& o) {
  auto& spec = solver.spec;
  auto& scales = *spec.mutable_poseidon()->mutable_replay();
  scales.set_time_scale(o.time_scale);
  scales.set_byte_scale(o.byte_scale);
  scales.set_fifo(o.fifo);
  spec.set_debug_info(false);
  solver.weights.clear();
}

/// Tests of noise and snapshots of what it has taught would only cost time.
void train_only(solver_file& solver) {
  auto& spec = solver.spec;
  spec.clear_test_iter();
  spec.clear_test_interval();
  spec.set_snapshot(0);
  spec.set_snapshot_after_train(false);
  solver.test_nets.clear();
  solver.test_states.clear();
}

run_definition read_run(const node_options& o) {
  run_definition run;
  run.solver = read_solver(o.solver);
  run.workers = o.nodes;
  if (!o.replay.empty()) make_replay(run.solver, o);
  if (o.synthetic || !o.replay.empty()) {
    train_only(run.solver);
    run.solver.spec.mutable_poseidon()->set_synthetic(o.synthetic.value_or(""));
    run.solver.spec.set_base_lr(0);  // training on noise could make the loss infinite
  }
  if (o.keep_snapshots) run.solver.spec.mutable_poseidon()->set_keep_snapshots(*o.keep_snapshots);
  if (o.staleness) run.solver.spec.mutable_poseidon()->set_staleness(*o.staleness);
  if (o.own_data) run.solver.spec.mutable_poseidon()->set_own_data(true);
  if (o.level) run.solver.train_state.level = *o.level;
  auto& stages = run.solver.train_state.stages;
  stages.insert(stages.end(), o.stages.begin(), o.stages.end());  // added, as in Caffe
  if (o.seed_given)
    run.seed = o.seed;
  else if (run.solver.spec.random_seed() >= 0)
    run.seed = static_cast<std::uint64_t>(run.solver.spec.random_seed());
  return run;
}

/// The known rate of all links of a node together.
double node_mbit_s(const node_options& o) {
  if (o.link_rate_mbit_s > 0) return o.link_rate_mbit_s;
  const bool budget =
      o.budget_mbit_s > 0 && (o.link_mbit_s == 0 || o.budget_mbit_s < o.link_mbit_s);
  return (budget ? o.budget_mbit_s : o.link_mbit_s) * static_cast<double>(o.nodes - 1);
}

std::shared_ptr<device> compute_of(const node_options& o) {
  auto cpu = make_cpu_device();
  if (o.gpus) return make_gpu_device(*o.gpus, std::move(cpu));
  if (o.replay.empty()) return cpu;
  return make_replay_device(read_profile(o.replay), std::move(cpu));
}

node_spec node_of(const node_options& o) {
  node_spec n;
  n.compute = compute_of(o);
  n.replicas = o.replicas;
  n.readers = o.readers;
  n.data_root = o.data_root;
  n.own_data = o.own_data;
  return n;
}

int explain_routes(const node_options& o) {
  route_request s;
  s.run = read_run(o);
  s.node = node_of(o);
  s.option = parse_routes(o.routes);
  s.wire = parse_wire(o.wire);
  s.link_mbit_s = node_mbit_s(o);
  s.explain = true;
  device_probe probe(s.node.compute->arithmetic());
  const auto plan = plan_routes(s, probe);
  if (o.explain_routes == "json") {
    std::fputs(routes_json(plan.decisions, plan.rates).c_str(), stdout);
    return 0;
  }
  std::fputs(routes_table(plan.decisions, plan.rates).c_str(), stdout);
  for (const auto& note : plan.notes) std::printf("%s\n", note.c_str());
  if (s.link_mbit_s <= 0)
    std::printf(
        "The links' rate is assumed (--link-rate); a run measures it when all nodes are in.\n");
  return 0;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

node_setup setup_of(const node_options& o, std::optional<run_definition> run) {
  node_setup s;
  s.run = std::move(run);
  if (s.run) s.first.weights = o.weights.empty() ? s.run->solver.weights : split_paths(o.weights);
  if (!o.snapshot.empty()) {
    const auto head = read_resume_point(o.snapshot);
    s.run->first_clock = head.iteration;
    s.run->data = head.data;
    if (!head.learned_net.empty()) s.first.weights = {weights_beside(o.snapshot, head.learned_net)};
    s.first.resume = o.snapshot;
  }
  s.node = node_of(o);
  s.cluster.listen = o.listen;
  s.cluster.join = o.join;
  s.cluster.token = o.token;
  s.cluster.silence_limit = milliseconds_of(o.silence_limit_s);
  s.cluster.progress_limit = milliseconds_of(o.progress_limit_s);
  s.cluster.link_mbit_s = o.link_mbit_s;
  s.cluster.budget_mbit_s = o.budget_mbit_s;
  s.choices.routes = parse_routes(o.routes);
  s.choices.wire = parse_wire(o.wire);
  s.choices.shares = parse_shares(o.batch_share, o.nodes);
  s.choices.node_mbit_s = node_mbit_s(o);
  s.records.trace_file = o.trace;
  s.records.recording = recording_json;
  s.records.graph_file = o.graph;
  s.records.shows = o.web.has_value();
  if (!o.join) s.command = o.command;
  return s;
}

std::shared_ptr<run_display> display_of(const node_options& o) {
  const auto level = verbosity_of(o.log_level);
  const auto nodes = o.join ? 2 : o.nodes;  // a joiner is never alone
  if (o.json) return std::make_shared<json_console>(level, nodes);
  if (o.log_format == "caffe") return std::make_shared<caffe_console>(level, nodes);
  return std::make_shared<console>(level, nodes);
}

/// What a run is shown on, and with --log-dir also the file that records it.
struct shown_run {
  std::shared_ptr<run_display> display;
  std::shared_ptr<log_file> log;
  std::shared_ptr<csv_file> table;

  void open_log(const node_options& o) {
    if (!o.log_dir.empty())
      log = std::make_shared<log_file>(o.log_dir, verbosity_of(o.log_level), display);
  }
  void open_table(const node_options& o) {
    if (!o.csv.empty()) table = std::make_shared<csv_file>(o.csv, !o.snapshot.empty(), all());
  }
  [[nodiscard]] std::shared_ptr<progress> all() const {
    if (table) return table;
    if (log) return log;
    return display;
  }
  void began(const solver_file& solver) const {
    const auto& net = solver.train_net.spec.name();
    display->began(net, solver.spec.lr_policy());
    if (log) log->began(net, solver.spec.lr_policy());
  }
  void ended(const node_result& result) const {
    if (log) log->ended(result.error);
    display->ended(result.exit_code, result.error);
  }
};

/// For --resume auto puts the newest state in its place. Returns  a line for the user; empty: another option.
std::string take_newest_state(const std::optional<run_definition>& run, node_options& o) {
  if (o.snapshot != "auto" || !run) return "";
  const auto& prefix = run->solver.spec.snapshot_prefix();
  const auto found = newest_state(prefix);
  o.warnings.insert(o.warnings.end(), found.passed_over.begin(), found.passed_over.end());
  o.snapshot = found.path.value_or("");
  return found.path
             ? "resuming from " + found.path->string()
             : "no state to resume from begins with " + prefix + "_iter_: training begins anew";
}

/// Everything that is known about the run before it begins, to the user and to the node.
node_setup started(node_options o, shown_run& shown) {
  std::optional<run_definition> run;
  if (!o.join) {
    run = read_run(o);
    check_solver(run->solver);
    for (const auto& lines : {run->solver.warnings, take_solver_mode(run->solver, o),
                              warn_of_staleness(run->solver, o)})
      o.warnings.insert(o.warnings.end(), lines.begin(), lines.end());
  }
  const auto resumed = take_newest_state(run, o);
  shown.open_table(o);
  auto setup = setup_of(o, std::move(run));
  setup.display = shown.all();
  if (!resumed.empty()) setup.display->note(resumed);
  for (const auto& line : o.warnings) setup.display->warning(line);
  return setup;
}

node_result train(const node_options& o, shown_run& shown, signal_thread& signals) {
  auto setup = started(o, shown);
  if (setup.run) shown.began(setup.run->solver);
  prepare(setup);
  std::unique_ptr<web::server> page;
  if (o.web) {
    page = web::serve_live(*o.web, o.web_token, setup.records.view);
    setup.display->note("page at http://" + to_string(page->address()) + "/");
  }
  return run_node(std::move(setup), [&](auto tell) {
    signals.run(
        [&o, tell = std::move(tell)](int signal) {
          const auto effect = signal == SIGHUP   ? o.sighup
                              : signal == SIGINT ? o.sigint
                                                 : signal_effect::stop;
          if (effect != signal_effect::none) tell({signal, effect == signal_effect::snapshot});
          return effect == signal_effect::stop;
        },
        [display = shown.display] { display->lines().abandon(); });
  });
}

int train_verb(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;  // --help, --version
  if (!options->explain_routes.empty()) return explain_routes(*options);
  signal_thread signals;
  shown_run shown{display_of(*options), nullptr, nullptr};
  node_result result;
  try {
    shown.open_log(*options);
    result = train(*options, shown, signals);
  } catch (const std::exception& e) {  // usually a bad file
    result = {exit_code_of(e), in_words(e.what()), nullptr};
  }
  shown.ended(result);
  return result.exit_code;
}

struct verb {
  const char* name;
  int (*run)(int argc, char** argv);
};
constexpr verb verbs[] = {{"train", train_verb},   {"test", test_verb},
                          {"time", time_verb},     {"device-query", device_query_verb},
                          {"status", status_verb}, {"classify", classify_verb}};

/// The verb is the first argument, as with Caffe's tool; the default is train.
int run(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return train_verb(argc, argv);
  std::string word = argv[1];
  std::replace(word.begin(), word.end(), '_', '-');  // Caffe's device_query
  std::vector<std::string> names;
  for (const auto& one : verbs) {
    if (word == one.name) return one.run(argc - 1, argv + 1);
    names.emplace_back(one.name);
  }
  refuse_verb("poseidon-node", argv[1], names);
}

}  // namespace

}  // namespace poseidon::app

int main(int argc, char** argv) {
  return poseidon::app::run_app(argc, argv, poseidon::app::run);
}
