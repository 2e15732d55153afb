// apps/node/time_verb.cpp - poseidon-node time: where a model's time goes, layer by layer.
#include "apps/node/devices.hpp"
#include "apps/node/verbs.hpp"
#include "cpu/cpu_device.hpp"
#include "models/atomic_file.hpp"
#include "models/cost.hpp"
#include "models/profile.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <sys/resource.h>

namespace poseidon::app {

namespace {

struct time_options {
  model_options model;
  std::string devices = "cpu", phase = "TRAIN";
  std::uint64_t iterations = 50;
  std::string profile_out, profile_note;
  double images_per_s = 0;  ///< 0: measured
};

/// False after --help.
bool read(time_options& o, int argc, char** argv) {
  std::string synthetic;
  CLI::App app("Times a model's layers: milliseconds, GFLOP/s and share of forward and backward.",
               "poseidon-node time");
  app.footer(
      "Example\n"
      "  poseidon-node time --model models/zoo/alexnet/train_val.prototxt --synthetic");
  app.add_option("--model", o.model.model, "net prototxt")->required();
  app.add_option("--weights", o.model.weights, ".caffemodel; without it, the net's fillers");
  app.add_option("--iterations", o.iterations, "passes to measure, after three to warm up")
      ->check(CLI::PositiveNumber);
  app.add_option("--phase", o.phase, "TRAIN (with backward and update) or TEST (forward alone)")
      ->check(CLI::IsMember({"TRAIN", "TEST"}));
  app.add_option("--synthetic", synthetic,
                 "random images instead of data; CxHxW where the data layers do not say")
      ->expected(0, 1);
  app.add_option("--devices", o.devices, devices_help);
  app.add_option("--data-root", o.model.data_root, "folder from which relative data sources start");
  app.add_option("--level", o.model.level, "for the net's include and exclude rules");
  app.add_option("--stage", o.model.stages,
                 "for the net's include and exclude rules; comma separated");
  app.add_option("--profile-out", o.profile_out,
                 "writes the layers' times for --devices replay:FILE; phase TRAIN");
  app.add_option("--images-s", o.images_per_s,
                 "with --profile-out: measures nothing, but spreads this throughput of a whole "
                 "device over the layers by their flops")
      ->check(CLI::PositiveNumber);
  app.add_option("--profile-note", o.profile_note,
                 "with --profile-out: what the file says about where its times come from");
  if (!parsed(app, argc, argv)) return false;
  if (app.count("--synthetic") > 0) o.model.synthetic = synthetic;
  o.model.replicas = parse_devices(o.devices);
  if (o.profile_out.empty() && (o.images_per_s > 0 || !o.profile_note.empty()))
    throw spec_error(
        "--images-s and --profile-note say what --profile-out writes. Give --profile-out FILE.");
  if (!o.profile_out.empty() && o.phase != "TRAIN")
    throw spec_error("--profile-out wants --phase TRAIN, not " + o.phase +
                     ": a profile holds forward and backward times.");
  return true;
}

struct row {
  std::string name, type;
  layer_seconds seconds;
  layer_flops flops;
};

std::string rate(std::uint64_t flops, double seconds) {
  if (flops == 0 || seconds <= 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e-9 * static_cast<double>(flops) / seconds);
  return text;
}

std::string megabytes(std::uint64_t bytes) {
  if (bytes == 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", 1e-6 * static_cast<double>(bytes));
  return std::string(text) + " MB";
}

void print(const row& r, double all) {
  const auto total = r.seconds.forward + r.seconds.backward;
  std::printf("%-24.24s %-16.16s %10.3f %8s %10.3f %8s %9s %6.1f %%\n", r.name.c_str(),
              r.type.c_str(), 1e3 * r.seconds.forward,
              rate(r.flops.forward, r.seconds.forward).c_str(), 1e3 * r.seconds.backward,
              rate(r.flops.backward, r.seconds.backward).c_str(),
              megabytes(r.seconds.reorders.bytes).c_str(), all > 0 ? 100 * total / all : 0);
}

double peak_megabytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) / 1024;
}

void report(const bare_run& run, std::uint64_t iterations, double wall) {
  const auto& net = run.compiled().train;
  const auto n = static_cast<double>(iterations);
  std::vector<row> rows;
  row sum{"all layers", "", {}, {}};
  for (std::size_t l = 0; l < net.graph.layers.size(); ++l) {
    const auto& layer = net.graph.layers[l];
    rows.push_back({layer.name,
                    layer.type,
                    {run.times()[l].forward / n,
                     run.times()[l].backward / n,
                     {run.times()[l].reorders.copies / iterations,
                      run.times()[l].reorders.bytes / iterations}},
                    flops_of(net.graph, l)});
    sum.seconds.forward += rows.back().seconds.forward;
    sum.seconds.backward += rows.back().seconds.backward;
    sum.seconds.reorders.copies += rows.back().seconds.reorders.copies;
    sum.seconds.reorders.bytes += rows.back().seconds.reorders.bytes;
    sum.flops.forward += rows.back().flops.forward;
    sum.flops.backward += rows.back().flops.backward;
  }
  const auto update = run.update_seconds() / n;
  const auto all = sum.seconds.forward + sum.seconds.backward + update;
  std::printf("%-24s %-16s %10s %8s %10s %8s %9s %8s\n", "layer", "type", "forward ms", "GFLOP/s",
              "backw. ms", "GFLOP/s", "reorders", "share");
  for (const auto& r : rows) print(r, all);
  print(sum, all);
  if (net.graph.phase == ::caffe::TRAIN) print({"update", "", {0, update, {}}, {}}, all);
  std::printf(
      "\nreorders: %llu copies of blobs and weights between memory layouts per iteration, %.2f "
      "MB\n",
      static_cast<unsigned long long>(sum.seconds.reorders.copies),
      1e-6 * static_cast<double>(sum.seconds.reorders.bytes));
  std::uint64_t parameters = 0;
  for (const auto& p : net.graph.parameters)
    parameters += static_cast<std::uint64_t>(count(p.shape));
  const auto images = static_cast<double>(net.batch * run.compiled().replicas);
  std::printf(
      "iteration %.3f ms, %.1f images/s, %.3f GFLOP per image; %llu parameters; peak memory %.0f "
      "MB\n",
      1e3 * wall / n, images * n / wall,
      1e-9 * static_cast<double>(sum.flops.forward + sum.flops.backward) /
          static_cast<double>(net.batch),
      static_cast<unsigned long long>(parameters), peak_megabytes());
}

void write_profile(const time_options& o, profile p) {
  if (!o.profile_note.empty()) p.measured = o.profile_note;
  const auto text = text_of(p);
  write_atomically(o.profile_out, std::span(text.data(), text.size()));
  std::printf("profile %s: batch %llu, %zu layers with times\n", o.profile_out.c_str(),
              static_cast<unsigned long long>(p.batch), p.layers.size());
}

/// Replicas work side by side: the times of one are those of the node for the whole batch.
profile measured_profile(const bare_run& run, std::uint64_t iterations) {
  const auto& net = run.compiled().train;
  profile p;
  p.net = net.graph.name;
  p.measured = make_cpu_device()->describe() + ", " + std::to_string(run.compiled().replicas) +
               " replicas, CPU time of the first over " + std::to_string(iterations) +
               " iterations";
  p.batch = net.batch * run.compiled().replicas;
  const auto ms = 1e3 / static_cast<double>(iterations);
  double flop = 0, seconds = 0;
  for (std::size_t l = 0; l < net.graph.layers.size(); ++l) {
    if (net.graph.layers[l].type != "InnerProduct") continue;
    flop += static_cast<double>(flops_of(net.graph, l).forward);
    seconds += run.times()[l].forward / static_cast<double>(iterations);
  }
  if (seconds > 0) p.gflop_s = 1e-9 * flop / seconds;
  for (std::size_t l = 0; l < net.graph.layers.size(); ++l)
    p.layers.push_back(
        {net.graph.layers[l].name, ms * run.times()[l].forward, ms * run.times()[l].backward, {}});
  return p;
}

int assume(const time_options& o) {
  const auto net = make_model_net(o.model, ::caffe::TRAIN);
  std::uint64_t batch = 0;
  for (const auto& layer : net.layers)
    if (is_source(layer))
      batch = static_cast<std::uint64_t>(net.blobs[layer.tops.front()].shape.front());
  char note[80];
  std::snprintf(note, sizeof note, "%g images/s, spread by flops", o.images_per_s);
  write_profile(o, spread_over_flops(net, batch, o.images_per_s, note));
  return 0;
}

}  // namespace

int time_verb(int argc, char** argv) {
  time_options o;
  if (!read(o, argc, argv)) return 0;
  if (o.images_per_s > 0) return assume(o);
  const auto phase = o.phase == "TRAIN" ? ::caffe::TRAIN : ::caffe::TEST;
  auto run = make_model_run(o.model, phase);
  const auto& net = run.compiled().train;
  const auto replicas = run.compiled().replicas;
  std::printf("net \"%s\", phase %s, batch %llu on %u %s; %s; %llu iterations\n",
              net.graph.name.c_str(), o.phase.c_str(),
              static_cast<unsigned long long>(net.batch * replicas), replicas,
              replicas == 1 ? "replica" : "replicas", make_cpu_device()->describe().c_str(),
              static_cast<unsigned long long>(o.iterations));
  if (replicas > 1)
    std::printf("Layers are timed on the first replica, with %llu of the images.\n",
                static_cast<unsigned long long>(net.batch));
  run.iterate(3);
  run.timed = true;
  run.reset_times();
  const auto begin = std::chrono::steady_clock::now();
  run.iterate(o.iterations);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  report(run, o.iterations, wall.count());
  if (!o.profile_out.empty()) write_profile(o, measured_profile(run, o.iterations));
  return 0;
}

}  // namespace poseidon::app
