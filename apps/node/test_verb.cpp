// apps/node/test_verb.cpp - poseidon-node test: the outputs of a model with weights, averaged over batches.
#include "apps/cli.hpp"
#include "apps/node/caffe_options.hpp"
#include "apps/node/devices.hpp"
#include "apps/node/option_binder.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/figures.hpp"
#include "apps/terminal/reporter.hpp"

#include <CLI/CLI.hpp>

#include <atomic>

namespace poseidon::app {

namespace {

/// `caffe` has these for other verbs.
const std::vector<std::string> not_for_test{"--solver",        "--snapshot",      "--phase",
                                            "--sigint-effect", "--sighup-effect", "--log-dir"};

/// All outputs of the pass that a replica has just made, in the order of compiled_net::outputs.
std::vector<float> read_outputs(const compiled_net& net, const replica& copy) {
  std::vector<float> values;
  for (const auto& reader : net.readers) {
    const auto some = read_outputs(net.graph, copy, reader);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

void report_batch(reporter& out, std::uint64_t batch, const std::vector<output_value>& outputs,
                  const std::vector<double>& values) {
  json_event named;
  for (std::size_t v = 0; v < values.size(); ++v) {
    out.remark("Batch " + std::to_string(batch) + ", " + outputs[v].name + " = " +
               number(values[v], "%.6g"));
    named.number(outputs[v].name, values[v]);
  }
  out.event(json_event("batch").count("batch", batch).object("outputs", named), false);
}

void report_means(reporter& out, std::uint64_t batches, const std::vector<output_value>& outputs,
                  const std::vector<double>& means) {
  double loss = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    loss += static_cast<double>(outputs[o].loss_weight) * means[o];
  out.result("Loss: " + number(loss, "%.6g"));
  json_event named;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto weight = static_cast<double>(outputs[o].loss_weight);
    auto line = outputs[o].name + " = " + number(means[o], "%.6g");
    if (weight != 0)
      line += " (* " + number(weight, "%g") + " = " + number(weight * means[o], "%.6g") + " loss)";
    out.result(line);
    named.number(outputs[o].name, means[o]);
  }
  out.event(
      json_event("result").count("batches", batches).number("loss", loss).object("outputs", named));
}

/// Outputs of random images say nothing about the model.
void refuse_deploy_net(const model_options& o) {
  if (!has_input(read_net(o.model))) return;
  throw spec_error(o.model +
                   " has no data layer but an input: it is a deploy net, and there is nothing to "
                   "test it with. Give the net that was trained (often train_val.prototxt).");
}

void test(const model_options& o, std::uint64_t iterations, reporter& out) {
  refuse_deploy_net(o);
  auto run = make_model_run(o, ::caffe::TEST, out.tasks());
  say_first(run, out);
  const auto& net = run.compiled().train;
  const auto replicas = run.compiled().replicas;
  if (net.outputs.empty())
    throw spec_error("net \"" + net.graph.name + "\" of " + o.model +
                     " has no output that is small enough to print: nothing to test.");
  std::vector<std::vector<float>> seen(replicas);
  run.after_forward = [&](std::uint64_t, std::uint32_t r) {
    seen[r] = read_outputs(net, *net.replicas[r]);
  };
  std::atomic<std::uint64_t> done{0};
  const auto shown = out.working({"testing", iterations, [&done] { return done.load(); }});
  std::vector<double> sums(net.outputs.size());
  for (std::uint64_t i = 0; i < iterations; ++i) {
    run.iterate(1);
    std::vector<double> values(sums.size());
    for (std::size_t v = 0; v < sums.size(); ++v) {
      for (const auto& of_replica : seen)
        values[v] += static_cast<double>(of_replica[v]) / replicas;
      sums[v] += values[v];
    }
    report_batch(out, i, net.outputs, values);
    done.store(i + 1);
  }
  for (auto& s : sums) s /= static_cast<double>(iterations);
  report_means(out, iterations, net.outputs, sums);
}

}  // namespace

int test_verb(int argc, char** argv) {
  model_options o;
  device_words devices;
  std::uint64_t iterations = 50;
  command_line app("Runs a model in phase TEST and averages its outputs over batches.",
                   "poseidon-node test");
  app.footer(
      "Example\n"
      "  poseidon-node test --model models/zoo/lenet/train_val.prototxt "
      "--weights lenet_iter_10000.caffemodel --iterations 100");
  app.add_option("--model", o.model, "net prototxt")->required();
  app.add_option("--weights", o.weights, ".caffemodel, copied by layer name")->required();
  app.add_option("--iterations", iterations, "batches")->check(positive_number);
  option_binder add(app);
  add_device_options(add, devices);
  app.add_option("--data-root", o.data_root, "folder from which relative data sources start");
  app.add_option("--level", o.level, "for the net's include and exclude rules");
  app.add_option("--stage", o.stages, "for the net's include and exclude rules; comma separated");
  output_words words;
  add_output_options(app, words);
  add_ignored_options(app, not_for_test);
  if (!parsed(app, argc, argv)) return 0;
  reporter out(words);
  for (const auto& line : ignored_options(app, not_for_test)) out.warning(line);
  o.gpus = gpus_of(app, devices);
  o.math = devices.gpus.math;
  o.readers = devices.readers;
  if (!o.gpus) o.replicas = parse_devices(devices.devices);
  out.until_end([&] { test(o, iterations, out); }, exit_code_of);
  return 0;
}

}  // namespace poseidon::app
