// apps/node/time_verb.cpp - poseidon-node time: where a model's time goes, layer by layer.
#include "apps/cli.hpp"
#include "apps/node/caffe_options.hpp"
#include "apps/node/devices.hpp"
#include "apps/node/measured_profile.hpp"
#include "apps/node/option_binder.hpp"
#include "apps/node/verbs.hpp"
#include "apps/run_app.hpp"
#include "apps/terminal/reporter.hpp"
#include "models/files/atomic_file.hpp"
#include "models/plan/cost.hpp"
#include "models/plan/profile.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <sys/resource.h>

namespace poseidon::app {

namespace {

/// `caffe` has these for other verbs.
const std::vector<std::string> not_for_time{"--solver", "--snapshot", "--sigint-effect",
                                            "--sighup-effect", "--log-dir"};

struct time_options {
  model_options model;
  device_words devices;
  std::string phase = "TRAIN";
  std::uint64_t iterations = 50;
  std::string profile_out, profile_note;
  double images_per_s = 0;  ///< 0: measured
  output_words words;
  std::vector<std::string> warnings;
};

/// False after --help.
bool read(time_options& o, int argc, char** argv) {
  std::string synthetic;
  command_line app(
      "Times a model's layers: milliseconds, GFLOP/s and share of forward and backward.",
      "poseidon-node time");
  app.footer(
      "Example\n"
      "  poseidon-node time --model models/zoo/alexnet/train_val.prototxt --synthetic");
  app.add_option("--model", o.model.model, "net prototxt")->required();
  app.add_option("--weights", o.model.weights, ".caffemodel; without it, the net's fillers");
  app.add_option("--iterations", o.iterations, "passes to measure, after three to warm up")
      ->check(positive_number);
  app.add_option("--phase", o.phase, "TRAIN (with backward and update) or TEST (forward alone)")
      ->check(CLI::IsMember({"TRAIN", "TEST"}));
  app.add_option("--synthetic", synthetic,
                 "random images instead of data; CxHxW where the data layers do not say")
      ->expected(0, 1);
  option_binder add(app);
  add_device_options(add, o.devices);
  app.add_option("--data-root", o.model.data_root, "folder from which relative data sources start");
  app.add_option("--level", o.model.level, "for the net's include and exclude rules");
  app.add_option("--stage", o.model.stages,
                 "for the net's include and exclude rules; comma separated");
  app.add_option("--profile-out", o.profile_out,
                 "writes the layers' times for --devices replay:FILE; phase TRAIN");
  app.add_option("--images-s", o.images_per_s,
                 "with --profile-out: measures nothing, but spreads this throughput of a whole "
                 "device over the layers by their flops")
      ->check(positive_number);
  app.add_option("--profile-note", o.profile_note,
                 "with --profile-out: what the file says about where its times come from");
  add_output_options(app, o.words);
  add_ignored_options(app, not_for_time);
  if (!parsed(app, argc, argv)) return false;
  o.warnings = ignored_options(app, not_for_time);
  if (app.count("--synthetic") > 0) o.model.synthetic = synthetic;
  o.model.gpus = gpus_of(app, o.devices);
  o.model.math = o.devices.gpus.math;
  o.model.readers = o.devices.readers;
  if (!o.model.gpus) o.model.replicas = parse_devices(o.devices.devices);
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
  layer_bytes bytes;
  const char* kind = "layer";
};

template <class... T>
std::string printed(const char* format, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string gflop_s(std::uint64_t flops, double seconds) {
  if (flops == 0 || seconds <= 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e-9 * static_cast<double>(flops) / seconds);
  return text;
}

std::string reordered_megabytes(std::uint64_t bytes) {
  if (bytes == 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", 1e-6 * static_cast<double>(bytes));
  return std::string(text) + " MB";
}

void print(reporter& out, const row& r, double all) {
  const auto total = r.seconds.forward + r.seconds.backward;
  const auto share = all > 0 ? total / all : 0;
  out.remark(printed("%-24.24s %-16.16s %10.3f %8s %10.3f %8s %9s %6.1f %%", r.name.c_str(),
                     r.type.c_str(), 1e3 * r.seconds.forward,
                     gflop_s(r.flops.forward, r.seconds.forward).c_str(), 1e3 * r.seconds.backward,
                     gflop_s(r.flops.backward, r.seconds.backward).c_str(),
                     reordered_megabytes(r.seconds.reorders.bytes).c_str(), 100 * share));
  json_event e(r.kind);
  e.text("name", r.name).text("type", r.type);
  e.number("forward_ms", 1e3 * r.seconds.forward).number("backward_ms", 1e3 * r.seconds.backward);
  e.count("forward_flop", r.flops.forward).count("backward_flop", r.flops.backward);
  e.count("forward_bytes", r.bytes.forward).count("backward_bytes", r.bytes.backward);
  e.count("reordered_bytes", r.seconds.reorders.bytes).number("share", share);
  out.event(e, false);
}

double peak_megabytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_maxrss) / 1024;
}

/// `wall`: seconds of all iterations. `waiting`: seconds with a wait after each layer, as in the table; 0 if the device
/// needs no wait.
void report(reporter& out, const bare_run& run, std::uint64_t iterations, double wall,
            double waiting) {
  const auto& net = run.compiled().train;
  const auto n = static_cast<double>(iterations);
  std::vector<row> rows;
  row sum{"all layers", "", {}, {}, {}, "sum"};
  for (std::size_t l = 0; l < net.graph.layers.size(); ++l) {
    const auto& layer = net.graph.layers[l];
    rows.push_back({layer.name,
                    layer.type,
                    {run.times()[l].forward / n,
                     run.times()[l].backward / n,
                     {run.times()[l].reorders.copies / iterations,
                      run.times()[l].reorders.bytes / iterations}},
                    flops_of(net.graph, l),
                    bytes_of(net.graph, l)});
    sum.seconds.forward += rows.back().seconds.forward;
    sum.seconds.backward += rows.back().seconds.backward;
    sum.seconds.reorders.copies += rows.back().seconds.reorders.copies;
    sum.seconds.reorders.bytes += rows.back().seconds.reorders.bytes;
    sum.flops.forward += rows.back().flops.forward;
    sum.flops.backward += rows.back().flops.backward;
    sum.bytes.forward += rows.back().bytes.forward;
    sum.bytes.backward += rows.back().bytes.backward;
  }
  const auto update = run.update_seconds() / n;
  const auto all = sum.seconds.forward + sum.seconds.backward + update;
  out.remark(printed("%-24s %-16s %10s %8s %10s %8s %9s %8s", "layer", "type", "forward ms",
                     "GFLOP/s", "backw. ms", "GFLOP/s", "reorders", "share"));
  for (const auto& r : rows) print(out, r, all);
  print(out, sum, all);
  if (net.graph.phase == ::caffe::TRAIN)
    print(out, {"update", "", {0, update, {}}, {}, {}, "update"}, all);
  out.remark("");
  out.remark(printed(
      "reorders: %llu copies of blobs and weights between memory layouts per iteration, %.2f MB",
      static_cast<unsigned long long>(sum.seconds.reorders.copies),
      1e-6 * static_cast<double>(sum.seconds.reorders.bytes)));
  std::uint64_t parameters = 0;
  for (const auto& p : net.graph.parameters)
    parameters += static_cast<std::uint64_t>(count(p.shape));
  const auto images = static_cast<double>(net.batch * run.compiled().replicas);
  const auto flop_per_image =
      static_cast<double>(sum.flops.forward + sum.flops.backward) / static_cast<double>(net.batch);
  if (waiting > 0)
    out.result(
        printed("each layer with a wait for the device behind it: %.3f ms an iteration; "
                "below, without these waits",
                1e3 * waiting / n));
  out.result(printed(
      "iteration %.3f ms, %.1f images/s, %.3f GFLOP per image; %llu parameters; peak memory %.0f "
      "MB",
      1e3 * wall / n, images * n / wall, 1e-9 * flop_per_image,
      static_cast<unsigned long long>(parameters), peak_megabytes()));
  json_event e("result");
  e.text("net", net.graph.name).text("phase", ::caffe::Phase_Name(net.graph.phase));
  e.count("iterations", iterations).number("iteration_ms", 1e3 * wall / n);
  if (waiting > 0) e.number("iteration_with_waits_ms", 1e3 * waiting / n);
  e.number("images_per_s", images * n / wall).number("flop_per_image", flop_per_image);
  e.count("parameters", parameters).number("peak_memory_mb", peak_megabytes());
  out.event(e);
}

void write_profile(const time_options& o, profile p, reporter& out) {
  if (!o.profile_note.empty()) p.measured = o.profile_note;
  const auto text = text_of(p);
  write_atomically(o.profile_out, std::span(text.data(), text.size()));
  out.remark("profile " + o.profile_out + ": batch " + std::to_string(p.batch) + ", " +
             std::to_string(p.layers.size()) + " layers with times");
  out.event(json_event("profile").text("path", o.profile_out).count("batch", p.batch));
}

void assume(const time_options& o, reporter& out) {
  const auto net = make_model_net(o.model, ::caffe::TRAIN);
  std::uint64_t batch = 0;
  for (const auto& layer : net.layers)
    if (is_source(layer))
      batch = static_cast<std::uint64_t>(net.blobs[layer.tops.front()].shape.front());
  char note[80];
  std::snprintf(note, sizeof note, "%g images/s, spread by flops", o.images_per_s);
  write_profile(o, spread_over_flops(net, batch, o.images_per_s, note), out);
}

void measure(const time_options& o, reporter& out) {
  const auto phase = o.phase == "TRAIN" ? ::caffe::TRAIN : ::caffe::TEST;
  auto run = make_model_run(o.model, phase, out.tasks());
  const auto& net = run.compiled().train;
  const auto replicas = run.compiled().replicas;
  out.remark("net \"" + net.graph.name + "\", phase " + o.phase + ", batch " +
             std::to_string(net.batch * replicas) + " on " + std::to_string(replicas) +
             (replicas == 1 ? " replica; " : " replicas; ") + run.compute().describe() + "; " +
             std::to_string(o.iterations) + " iterations");
  say_first(run, out);
  if (replicas > 1)
    out.remark("Layers are timed on the first replica, with " + std::to_string(net.batch) +
               " of the images.");
  constexpr std::uint64_t warm_up = 3;
  std::atomic<std::uint64_t> done{0};
  auto shown =
      out.working({"timing", warm_up + o.iterations * (run.compute().is_asynchronous() ? 2 : 1),
                   [&done] { return done.load(std::memory_order_relaxed); }});
  run.after_iteration = [&done] { done.fetch_add(1, std::memory_order_relaxed); };
  run.iterate(warm_up);
  run.timed = true;
  run.reset_times();
  const auto seconds = [&] {
    const auto begin = std::chrono::steady_clock::now();
    run.iterate(o.iterations);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double wall = seconds(), waiting = 0;
  if (run.compute().is_asynchronous()) {
    waiting = wall;
    run.timed = false;
    wall = seconds();
  }
  shown.reset();
  report(out, run, o.iterations, wall, waiting);
  if (!o.profile_out.empty()) write_profile(o, measured_profile(run, o.iterations, wall), out);
}

}  // namespace

int time_verb(int argc, char** argv) {
  time_options o;
  if (!read(o, argc, argv)) return 0;
  reporter out(o.words);
  for (const auto& line : o.warnings) out.warning(line);
  out.until_end([&] { o.images_per_s > 0 ? assume(o, out) : measure(o, out); }, exit_code_of);
  return 0;
}

}  // namespace poseidon::app
