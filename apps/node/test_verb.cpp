// apps/node/test_verb.cpp - poseidon-node test: the outputs of a model with weights, averaged over batches.
#include "apps/node/devices.hpp"
#include "apps/node/verbs.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace poseidon::app {

namespace {

/// All outputs of the pass that a replica has just made, in the order of compiled_net::outputs.
std::vector<float> read_outputs(const compiled_net& net, const replica& copy) {
  std::vector<float> values;
  for (const auto& reader : net.readers) {
    const auto some = read_outputs(net, copy, reader);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

void print_means(const std::vector<output_value>& outputs, const std::vector<double>& means) {
  double loss = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    loss += static_cast<double>(outputs[o].loss_weight) * means[o];
  std::printf("Loss: %.6g\n", loss);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto weight = static_cast<double>(outputs[o].loss_weight);
    std::printf("%s = %.6g", outputs[o].name.c_str(), means[o]);
    if (weight != 0) std::printf(" (* %g = %.6g loss)", weight, weight * means[o]);
    std::printf("\n");
  }
}

}  // namespace

int test_verb(int argc, char** argv) {
  model_options o;
  std::string devices = "cpu";
  std::uint64_t iterations = 50;
  CLI::App app("Runs a model in phase TEST and averages its outputs over batches.",
               "poseidon-node test");
  app.footer(
      "Example\n"
      "  poseidon-node test --model models/zoo/lenet/train_val.prototxt "
      "--weights lenet_iter_10000.caffemodel --iterations 100");
  app.add_option("--model", o.model, "net prototxt")->required();
  app.add_option("--weights", o.weights, ".caffemodel, copied by layer name")->required();
  app.add_option("--iterations", iterations, "batches")->check(CLI::PositiveNumber);
  app.add_option("--devices", devices, devices_help);
  app.add_option("--data-root", o.data_root, "folder from which relative data sources start");
  app.add_option("--level", o.level, "for the net's include and exclude rules");
  app.add_option("--stage", o.stages, "for the net's include and exclude rules; comma separated");
  if (!parsed(app, argc, argv)) return 0;
  o.replicas = parse_devices(devices);

  auto run = make_model_run(o, ::caffe::TEST);
  const auto& net = run.compiled().train;
  const auto replicas = run.compiled().replicas;
  if (net.outputs.empty())
    throw spec_error("net \"" + net.graph.name + "\" of " + o.model +
                     " has no output that is small enough to print: nothing to test.");
  std::vector<std::vector<float>> seen(replicas);
  run.after_forward = [&](std::uint64_t, std::uint32_t r) {
    seen[r] = read_outputs(net, *net.replicas[r]);
  };
  std::vector<double> sums(net.outputs.size());
  for (std::uint64_t i = 0; i < iterations; ++i) {
    run.iterate(1);
    for (std::size_t v = 0; v < sums.size(); ++v) {
      double mean = 0;
      for (const auto& values : seen) mean += static_cast<double>(values[v]) / replicas;
      std::printf("Batch %llu, %s = %.6g\n", static_cast<unsigned long long>(i),
                  net.outputs[v].name.c_str(), mean);
      sums[v] += mean;
    }
  }
  for (auto& s : sums) s /= static_cast<double>(iterations);
  print_means(net.outputs, sums);
  return 0;
}

}  // namespace poseidon::app
