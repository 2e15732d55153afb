// apps/node/check_verb.cpp - poseidon-node check: all that training looks at before its first iteration, without training.
#include "actors/run/compile_run.hpp"
#include "actors/run/train_net.hpp"
#include "apps/cli.hpp"
#include "apps/node/check_report.hpp"
#include "apps/node/label_check.hpp"
#include "apps/node/option_binder.hpp"
#include "apps/node/run_setup.hpp"
#include "apps/node/start_checks.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"
#include "models/files/snapshot.hpp"
#include "models/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <malloc.h>

namespace poseidon::app {

namespace {

struct check_options {
  node_options node;
  output_words words;
};

/// False after --help.
bool read(check_options& o, int argc, char** argv) {
  device_words devices;
  std::string stages;
  command_line app("Looks at all that training looks at before it begins, and trains nothing.",
                   "poseidon-node check");
  app.footer("Example\n  poseidon-node check models/zoo/lenet/solver.prototxt");
  app.add_option("SOLVER,--solver", o.node.solver, "solver prototxt")->required();
  app.add_option("--nodes", o.node.nodes, "how many nodes would train together")
      ->check(CLI::Range(1, 4096));
  option_binder add(app);
  add_device_options(add, devices);
  app.add_option("--weights", o.node.weights,
                 ".caffemodel to start from, copied by layer name; several with commas");
  app.add_option("--data-root", o.node.data_root, "folder from which relative data sources start");
  int level = 0;
  app.add_option("--level", level, "for the train net's include and exclude rules");
  app.add_option("--stage", stages, "for the train net's include and exclude rules, with commas");
  add_output_options(app, o.words);
  if (!parsed(app, argc, argv)) return false;
  if (app.count("--level") > 0) o.node.level = level;
  o.node.stages = comma_separated(stages);
  o.node.devices_given = app.count("--devices") + app.count("--gpu") > 0;
  o.node.gpu_words = devices.gpus;
  o.node.gpu_option = gpu_option_of(app);
  if (o.node.devices_given) o.node.gpus = gpus_of(app, devices);
  o.node.readers = devices.readers;
  if (!o.node.gpus) o.node.replicas = parse_devices(devices.devices);
  return true;
}

class start_check {
 public:
  explicit start_check(node_options o) : o_(std::move(o)) {}

  void run();
  std::vector<std::string> errors, warnings;
  std::optional<run_figures> figures;

 private:
  /// An error of this step does not hide those of the next ones. Returns  whether there was none.
  template <class Step>
  bool attempt(Step step) {
    try {
      step();
      return true;
    } catch (const std::exception& e) {
      const auto text = in_words(e.what());
      if (std::find(errors.begin(), errors.end(), text) == errors.end()) errors.push_back(text);
      return false;
    }
  }
  void warn(const std::vector<std::string>& lines) {
    warnings.insert(warnings.end(), lines.begin(), lines.end());
  }
  void look_at_solver(const run_definition& run);
  void look_at_nets(const run_definition& run);
  void look_at_each_net(const run_definition& run, const node_spec& node);
  void look_at_weights(const run_definition& run, compiled_run& c);

  node_options o_;
};

/// A missing folder for snapshots is made to see that it can be, and removed again.
void start_check::look_at_solver(const run_definition& run) {
  std::vector<std::filesystem::path> made;
  const std::filesystem::path prefix = run.solver.spec.snapshot_prefix();
  for (auto p = prefix.parent_path(); !p.empty() && !std::filesystem::exists(p);
       p = p.parent_path())
    made.push_back(p);
  attempt([&] { check_solver(run.solver); });
  std::error_code ignored;
  for (const auto& p : made) std::filesystem::remove(p, ignored);
}

/// First samples are decoded, because a source is opened without reading them.
void read_first_samples(const compiled_net& n) {
  for (const auto& source : n.sources) {
    if (!source) continue;
    std::vector<std::vector<float>> values;
    for (const auto& s : source->sample_shapes())
      values.emplace_back(static_cast<std::size_t>(count(s)));
    std::vector<std::span<float>> tops(values.begin(), values.end());
    source->fill(0, tops);
  }
}

void start_check::look_at_weights(const run_definition& run, compiled_run& c) {
  const auto files = o_.weights.empty() ? run.solver.weights : split_paths(o_.weights);
  for (const auto& file : files)
    attempt([&] { write_first_values(c.train.graph, run.seed, {file}, 0, *c.store); });
}

/// After compile_run has found an error: each net by itself, so that all their errors are heard.
void start_check::look_at_each_net(const run_definition& run, const node_spec& node) {
  attempt([&] { (void)resolve_train_net(run, node); });
  for (std::size_t t = 0; t < run.solver.test_nets.size(); ++t) {
    auto alone = run;
    alone.solver.train_net = run.solver.test_nets[t];
    alone.solver.train_state = run.solver.test_states[t];
    attempt([&] { (void)resolve_train_net(alone, node); });
  }
  for (const auto& file : o_.weights.empty() ? run.solver.weights : split_paths(o_.weights))
    attempt([&] { (void)read_caffemodel(file); });
}

/// By this process: a compiled net takes all of its buffers at once.
std::uint64_t allocated_bytes() {
  const auto now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

void start_check::look_at_nets(const run_definition& run) {
  std::optional<node_spec> node;
  if (!attempt([&] { node = node_of(o_); })) return;
  std::unique_ptr<compiled_run> c;
  const auto before = allocated_bytes();
  if (!attempt([&] { c = compile_run(run, *node); })) return look_at_each_net(run, *node);
  const auto taken = allocated_bytes() - before;
  warn(c->warnings);
  attempt([&] { read_first_samples(c->train); });
  for (const auto& test : c->tests) attempt([&] { read_first_samples(test); });
  attempt([&] { check_labels(c->train); });
  for (const auto& test : c->tests) attempt([&] { check_labels(test); });
  look_at_weights(run, *c);
  attempt([&] { figures = figures_of(run, *c, taken); });
  if (figures) warn(warn_of_tests(*figures));
}

void start_check::run() {
  std::optional<run_definition> run;
  if (!attempt([&] { run = read_run(o_); })) return;
  warn(run->solver.warnings);
  look_at_solver(*run);
  attempt([&] { warn(take_solver_mode(run->solver, o_)); });
  warn(warn_of_staleness(run->solver, o_));
  warn(take_survive(*run, o_));
  look_at_nets(*run);
}

void print(const start_check& c, const output_words& words) {
  for (const auto& line : c.errors) std::fprintf(stderr, "%s\n", to_terminal(line).c_str());
  for (const auto& line : c.warnings) std::fprintf(stderr, "%s\n", to_terminal(line).c_str());
  if (words.json) {
    auto all = json_object()
                   .put("errors", json_array::from(c.errors))
                   .put("warnings", json_array::from(c.warnings));
    if (c.figures) all.add(json_of(*c.figures));
    std::printf("%s\n", all.text().c_str());
    return;
  }
  if (c.figures && !words.quiet)
    for (const auto& line : lines_of(*c.figures)) std::printf("%s\n", line.c_str());
  std::printf("check: %s, %s\n", plural(c.errors.size(), "error").c_str(),
              plural(c.warnings.size(), "warning").c_str());
}

}  // namespace

int check_verb(int argc, char** argv) {
  check_options o;
  if (!read(o, argc, argv)) return 0;
  start_check check(o.node);
  check.run();
  print(check, o.words);
  return check.errors.empty() ? 0 : 2;
}

}  // namespace poseidon::app
