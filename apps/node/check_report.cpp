#include "apps/node/check_report.hpp"

#include "apps/terminal/figures.hpp"
#include "models/solver/outer_steps.hpp"
#include "models/solver/solver_file.hpp"
#include "models/words.hpp"

namespace poseidon::app {

namespace {

/// DummyData has samples without end, and says so with a size that no data set reaches.
constexpr std::uint64_t without_end = std::uint64_t{1} << 62;

/// Samples of the first data layer; empty without one.
std::optional<std::uint64_t> samples_of_data(const compiled_net& n) {
  for (const auto& source : n.sources)
    if (source && source->size() < without_end) return source->size();
  return std::nullopt;
}

/// Those on the way, and the one at the end if none is due there.
std::uint64_t snapshots_of(const ::caffe::SolverParameter& s) {
  const auto last = static_cast<std::uint64_t>(s.max_iter());
  const auto every = s.snapshot() > 0 ? static_cast<std::uint64_t>(s.snapshot()) : 0;
  const std::uint64_t due = every > 0 ? last / every : 0;
  const bool at_end = every > 0 && last % every == 0;
  return due + (s.snapshot_after_train() && !at_end ? 1 : 0);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string test_figures::text() const {
  return "test_iter " + std::to_string(iterations) + " x batch " + std::to_string(batch) + " = " +
         (samples > 0 ? std::to_string(tested()) + " of " + plural(samples, "sample")
                      : plural(tested(), "sample"));
}

run_figures figures_of(const run_definition& run, const compiled_run& c,
                       std::uint64_t memory_bytes) {
  const auto& s = run.solver.spec;
  run_figures f;
  f.net = c.train.graph.name;
  f.layers = c.train.graph.layers.size();
  for (const auto& p : c.train.graph.parameters)
    f.parameters += static_cast<std::uint64_t>(count(p.shape));
  f.state_values = f.parameters * history_count(shared_rule_of(s).kind);
  f.memory_bytes = memory_bytes;
  f.fewer_bytes = memory_of(c.train.graph, s, run.workers);
  f.replicas = c.replicas;
  f.nodes = run.workers;
  f.iterations_per_exchange = iterations_per_clock(s);
  f.samples_per_iteration = samples_of_node(c) * run.workers / f.iterations_per_exchange;
  f.iterations = static_cast<std::uint64_t>(s.max_iter());
  f.snapshots = snapshots_of(s);
  f.train_samples = samples_of_data(c.train);
  f.rate_policy = policy_of(s);
  f.first_rate = static_cast<double>(learning_rate(s, 0));
  f.last_rate = static_cast<double>(learning_rate(s, f.iterations > 0 ? f.iterations - 1 : 0));
  for (std::size_t t = 0; t < c.tests.size(); ++t) {
    const auto iterations = static_cast<int>(t) < s.test_iter_size() ? s.test_iter(int(t)) : 0;
    f.tests.push_back({c.tests[t].graph.name, static_cast<std::uint64_t>(iterations),
                       c.tests[t].batch, samples_of_data(c.tests[t]).value_or(0)});
  }
  return f;
}

std::vector<std::string> warn_of_tests(const run_figures& f) {
  std::vector<std::string> warnings;
  for (std::size_t t = 0; t < f.tests.size(); ++t) {
    const auto& test = f.tests[t];
    if (test.samples == 0 || test.tested() == test.samples) continue;
    const bool less = test.tested() < test.samples;
    warnings.push_back("test net " + std::to_string(t) + ": " + test.text() + ": a test phase " +
                       (less ? "leaves samples out." : "reads some samples more than once.") +
                       " Choose test_iter so that test_iter x batch is the number of samples.");
  }
  return warnings;
}

std::vector<std::string> lines_of(const run_figures& f) {
  std::vector<std::string> lines;
  lines.push_back("net \"" + f.net + "\": " + plural(f.layers, "layer") + ", " +
                  plural(f.parameters, "parameter") + ", " + megabytes(4 * f.parameters));
  lines.push_back("iteration: " + plural(f.samples_per_iteration, "sample") + " on " +
                  plural(f.nodes, "node") + " with " + plural(f.replicas, "replica") +
                  (f.nodes > 1 ? " each" : ""));
  lines.push_back("memory of a node: " + megabytes(f.node_bytes()) + " for " +
                  plural(f.replicas, "replica") +
                  ", the parameters and its part of the solver's state; libraries take more while "
                  "they compute");
  if (f.nodes > 1)
    lines.push_back("each node sends " + megabytes(f.sent_bytes()) +
                    (f.iterations_per_exchange > 1
                         ? " every " + std::to_string(f.iterations_per_exchange) +
                               " iterations (outer_steps), as float32"
                         : " in an iteration if all layers use the parameter server; "
                           "--explain-routes says what factors would save"));
  if (f.nodes > 1) lines.push_back(text_of(f.fewer_bytes));
  if (f.train_samples && *f.train_samples > 0 && f.samples_per_iteration > 0)
    lines.push_back("training data: " + plural(*f.train_samples, "sample") + ", " +
                    number(share(*f.train_samples, f.samples_per_iteration)) +
                    " iterations per epoch, " +
                    number(share(f.iterations * f.samples_per_iteration, *f.train_samples)) +
                    " epochs in max_iter " + std::to_string(f.iterations));
  for (std::size_t t = 0; t < f.tests.size(); ++t)
    lines.push_back("test net " + std::to_string(t) + ": " + f.tests[t].text());
  lines.push_back("learning rate: policy \"" + f.rate_policy + "\", first " + number(f.first_rate) +
                  ", last " + number(f.last_rate));
  lines.push_back("snapshots: " + std::to_string(f.snapshots) + ", with " +
                  megabytes(4 * f.parameters * f.snapshots) + " of weights and " +
                  megabytes(4 * f.state_values * f.snapshots) + " of state in all");
  return lines;
}

json_object json_of(const run_figures& f) {
  json_array tests;
  for (const auto& t : f.tests)
    tests.put(json_object()
                  .put("net", t.net)
                  .put("test_iter", t.iterations)
                  .put("batch", t.batch)
                  .put("tested", t.tested())
                  .put("samples", t.samples));
  return json_object()
      .put("net", f.net)
      .put("layers", f.layers)
      .put("parameters", f.parameters)
      .put("parameter_bytes", 4 * f.parameters)
      .put("nodes", f.nodes)
      .put("replicas", f.replicas)
      .put("memory_bytes", f.node_bytes())
      .put("more_memory_bytes", json_of(f.fewer_bytes))
      .put("sent_bytes", f.sent_bytes())
      .put("iterations_per_exchange", f.iterations_per_exchange)
      .put("samples_per_iteration", f.samples_per_iteration)
      .put("train_samples", f.train_samples)
      .put("max_iter", f.iterations)
      .put("tests", tests)
      .put("lr_policy", f.rate_policy)
      .put("first_lr", f.first_rate)
      .put("last_lr", f.last_rate)
      .put("snapshots", f.snapshots);
}

}  // namespace poseidon::app
