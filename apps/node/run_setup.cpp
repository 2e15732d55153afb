#include "apps/node/run_setup.hpp"

#include "apps/web/view_json.hpp"
#include "cpu/cpu_device.hpp"
#include "models/files/newest_state.hpp"
#include "models/files/snapshot.hpp"
#include "models/no_memory.hpp"
#include "models/solver/goals.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"
#include "replay/replay_device.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace poseidon::app {

namespace {

/// Reduces a run to what sleeping kernels need: no data, no tests, no files.
void make_replay(solver_file& solver, const node_options& o) {
  auto& spec = solver.spec;
  auto& scales = *spec.mutable_poseidon()->mutable_replay();
  scales.set_time_scale(o.replay->times);
  scales.set_byte_scale(o.replay->bytes);
  scales.set_fifo(o.replay->fifo);
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
  spec.mutable_poseidon()->clear_keep_best();
  spec.mutable_poseidon()->clear_stop_at();
  solver.test_nets.clear();
  solver.test_states.clear();
}

std::shared_ptr<device> compute_of(const node_options& o) {
  if (o.gpus) return make_gpu_device(*o.gpus, make_cpu_device());
  if (o.replay) return make_replay_device(read_profile(o.replay->profile), make_cpu_device());
  return make_processor(o.gpu_words.math);
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

void set_silence_limit(cluster_setup& s, const std::string& asked) {
  constexpr std::chrono::milliseconds least{700}, most{2000};
  const auto given = asked == "auto" ? std::nullopt : std::optional(std::stod(asked));
  s.silence_limit = given ? milliseconds_of(*given) : most;
  s.least_silence_limit = given ? s.silence_limit : least;
}

}  // namespace

run_definition read_run(const node_options& o) {
  const memory_for use("the solver and its nets");
  run_definition run;
  run.solver = read_solver(o.solver);
  run.workers = o.nodes;
  if (o.replay) make_replay(run.solver, o);
  if (o.synthetic || o.replay) {
    train_only(run.solver);
    run.solver.spec.mutable_poseidon()->set_synthetic(o.synthetic.value_or(""));
    run.solver.spec.set_base_lr(0);  // training on noise could make the loss infinite
  }
  if (o.keep_snapshots) run.solver.spec.mutable_poseidon()->set_keep_snapshots(*o.keep_snapshots);
  if (!o.keep_best.empty()) run.solver.spec.mutable_poseidon()->set_keep_best(o.keep_best);
  if (!o.stop_at.empty()) run.solver.spec.mutable_poseidon()->set_stop_at(o.stop_at);
  check_goals(run.solver.spec);
  if (o.staleness) run.solver.spec.mutable_poseidon()->set_staleness(*o.staleness);
  if (o.own_data) run.solver.spec.mutable_poseidon()->set_own_data(true);
  check_outer_steps(run.solver.spec);
  if (o.level) run.solver.train_state.level = *o.level;
  auto& stages = run.solver.train_state.stages;
  stages.insert(stages.end(), o.stages.begin(), o.stages.end());  // added, as in Caffe
  if (o.seed_given)
    run.seed = o.seed;
  else if (run.solver.spec.random_seed() >= 0)
    run.seed = static_cast<std::uint64_t>(run.solver.spec.random_seed());
  return run;
}

double node_mbit_s(const node_options& o) {
  if (o.link_rate_mbit_s > 0) return o.link_rate_mbit_s;
  const bool budget =
      o.budget_mbit_s > 0 && (o.link_mbit_s == 0 || o.budget_mbit_s < o.link_mbit_s);
  return (budget ? o.budget_mbit_s : o.link_mbit_s) * static_cast<double>(o.nodes - 1);
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

namespace {

/// The clock with which a run goes on.
/// Errors   spec_error: the state belongs to a run with outer steps and this run makes none, or the other way round.
std::uint64_t first_clock_of(const run_definition& run, const resume_point& head,
                             const std::filesystem::path& file) {
  const auto every = run.solver.spec.poseidon().outer_steps();
  const auto said = [](std::uint32_t steps) {
    return steps > 0 ? "with outer_steps: " + std::to_string(steps) : "without outer_steps";
  };
  if ((head.outer_steps > 0) != (every > 0))
    throw spec_error(
        {file.string(), 0},
        "a run " + said(head.outer_steps) + " wrote this state, and this run is one " +
            said(every) +
            ": its arrays mean something else. Begin with the weights alone (--weights "
            "in place of the state), which counts iterations from 0.");
  return clock_at(run.solver.spec, head.iteration, file.string() + ": its iteration");
}

void refuse_with_outer_steps(const run_definition& run, const leader_choices& choices,
                             const node_options& o) {
  const auto outer = outer_rule_of(run.solver.spec);
  if (!outer) return;
  const auto steps = "poseidon { outer_steps: " + std::to_string(outer->every) + " }";
  if (choices.shares.what != share_option::kind::equal)
    throw spec_error("--batch-share " + o.batch_share + " does not go with " + steps +
                     ": the mean is over nodes that have made equally many steps with equally many "
                     "samples. Leave out --batch-share.");
  if (choices.global_batch == batch_rule::keep)
    throw spec_error("--global-batch keep does not go with " + steps +
                     ": samples of an iteration are those of one node. Leave out --global-batch.");
}

/// --views counts iterations.
view_schedule views_of(const run_definition& run, const node_options& o) {
  view_schedule clocks;
  for (const auto& [iteration, nodes] :
       read_view_schedule(o.views, iteration_of(run, run.first_clock), o.nodes))
    clocks[clock_at(run.solver.spec, iteration, "--views " + o.views + ": iteration")] = nodes;
  return clocks;
}

}  // namespace

node_setup setup_of(const node_options& o, std::optional<run_definition> run) {
  node_setup s;
  s.run = std::move(run);
  if (s.run) s.first.weights = o.weights.empty() ? s.run->solver.weights : split_paths(o.weights);
  if (!o.snapshot.empty()) {
    const auto head = read_resume_point(o.snapshot);
    s.run->first_clock = first_clock_of(*s.run, head, o.snapshot);
    s.run->data = head.data;
    s.first.global_batch = head.global_batch;
    if (!head.learned_net.empty()) s.first.weights = {weights_beside(o.snapshot, head.learned_net)};
    s.first.resume = o.snapshot;
  }
  s.node = node_of(o);
  s.cluster.listen = o.listen;
  s.cluster.join = o.join;
  s.cluster.as_witness = o.witness;
  s.cluster.token = o.token;
  s.cluster.tls = o.tls;
  set_silence_limit(s.cluster, o.silence_limit);
  s.cluster.progress_limit = milliseconds_of(o.progress_limit_s);
  s.cluster.link_mbit_s = o.link_mbit_s;
  s.cluster.budget_mbit_s = o.budget_mbit_s;
  s.choices.routes = parse_routes(o.routes, o.rank);
  s.choices.wire = parse_wire(o.wire);
  s.choices.lossy = parse_lossy(o.lossy);
  s.choices.shares = parse_shares(o.batch_share, o.nodes);
  if (!o.global_batch.empty())
    s.choices.global_batch = o.global_batch == "keep" ? batch_rule::keep : batch_rule::scale;
  if (s.run) refuse_with_outer_steps(*s.run, s.choices, o);
  s.choices.node_mbit_s = node_mbit_s(o);
  s.choices.by_schedule = !o.views.empty();
  if (s.choices.by_schedule) s.choices.views = views_of(*s.run, o);
  s.records.trace_file = o.trace;
  s.records.recording = recording_json;
  s.records.graph_file = o.graph;
  s.records.shows = o.web.has_value();
  if (o.join.empty()) s.command = o.command;
  return s;
}

}  // namespace poseidon::app
