// tools/bench/net_bench.cpp
//
// Asks    How many images per second does the bare sequence read, forward, backward, add, update reach?
//         What actors add to it shows against this; PyTorch's step is measured by a script of the same form.
// Shapes  any solver; those of the zoo by name. --synthetic feeds random images, --batch another batch.
// Checks  nothing: results are checked by tests.
// Run     net_bench --net lenet --replicas 2 --seconds 8        one line of JSON
//         net_bench --net lenet --profile                       and a table of CPU ms per layer on stderr
// Reads   images_per_s is the median chunk, rates all of them, best the fastest, clean the median of chunks during which other
//         processes used less than 0.08 of a core; cpu_ms_per_image counts all threads and is the figure that
//         a busy machine disturbs least.
#include "apps/bare/bare_run.hpp"
#include "cpu/cpu_device.hpp"
#include "models/solver/solver_file.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <unistd.h>

#include "tools/bench/lib/median.hpp"

namespace {

using namespace poseidon;

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double now() {
  return seconds_of(CLOCK_MONOTONIC);
}
double process_cpu() {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/// CPU seconds that the whole machine has spent so far.
double machine_cpu() {
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  double busy = 0;
  for (int i = 0; i < 8; ++i) {
    double ticks = 0;
    stat >> ticks;
    if (i != 3 && i != 4) busy += ticks;  // without idle and waiting for disks
  }
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct settings {
  std::string net, solver, synthetic, data_root;
  bool random_images = false;
  int batch = 0, replicas = 1;
  double seconds = 8, chunk = 0.5, clean = 0.08;
  std::uint64_t iterations = 0, every = 0;
  bool profile = false;
};

void set_batch(net_file& file, int batch) {
  for (auto& layer : *file.spec.mutable_layer()) {
    if (layer.has_data_param()) layer.mutable_data_param()->set_batch_size(batch);
    if (layer.has_image_data_param()) layer.mutable_image_data_param()->set_batch_size(batch);
    if (layer.has_hdf5_data_param()) layer.mutable_hdf5_data_param()->set_batch_size(batch);
    for (auto& s : *layer.mutable_input_param()->mutable_shape())
      if (s.dim_size() > 0) s.set_dim(0, batch);
  }
}

run_definition read_run(const settings& s) {
  run_definition run;
  run.solver =
      read_solver(s.solver.empty() ? "models/zoo/" + s.net + "/solver.prototxt" : s.solver);
  if (s.random_images) {
    run.solver.spec.mutable_poseidon()->set_synthetic(s.synthetic);
    run.solver.spec.set_base_lr(0);  // as poseidon-node --synthetic does
  }
  run.solver.test_nets.clear();
  if (s.batch > 0) set_batch(run.solver.train_net, s.batch);
  return run;
}

std::string listed(const std::vector<double>& values) {
  std::string text;
  for (const auto v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
  return text;
}

double loss_of(const app::bare_run& run) {
  float v = 0;
  const auto& train = run.compiled().train;
  for (const auto& l : train.graph.layers)
    if (l.type == "SoftmaxWithLoss") train.replicas[0]->read_data(l.tops[0], {&v, 1});
  return static_cast<double>(v);
}

std::size_t values_of(const net& n) {
  std::size_t sum = 0;
  for (const auto& p : n.parameters) sum += static_cast<std::size_t>(count(p.shape));
  return sum;
}

void print_times(const app::bare_run& run, double iterations) {
  const auto& layers = run.compiled().train.graph.layers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    std::fprintf(stderr, "%-24s %-16s forward %9.3f ms  backward %9.3f ms\n",
                 layers[i].name.c_str(), layers[i].type.c_str(),
                 1e3 * run.times()[i].forward / iterations,
                 1e3 * run.times()[i].backward / iterations);
  std::fprintf(stderr, "%-24s %-16s         %9.3f ms\n", "update", "",
               1e3 * run.update_seconds() / iterations);
}

void measure(const settings& s) {
  const auto spec = read_run(s);
  node_spec node;
  node.compute = make_cpu_device();
  node.replicas = static_cast<std::uint32_t>(s.replicas);
  node.data_root = s.data_root;
  app::bare_run run(spec, node, {});
  const double images = static_cast<double>(run.compiled().train.batch * run.compiled().replicas);

  auto iterations = s.iterations, per_chunk = s.every;
  if (iterations == 0) {
    run.iterate(3);
    const double begin = now();
    run.iterate(1);
    const double per = now() - begin;
    per_chunk = static_cast<std::uint64_t>(std::max(1.0, s.chunk / per + 0.5));
    iterations = static_cast<std::uint64_t>(std::max(3.0, s.seconds / per));
  }
  run.timed = s.profile;
  run.reset_times();
  std::vector<double> rates, clean, cpu;
  double other_sum = 0;
  std::uint64_t done = 0;
  for (; done < iterations; done += per_chunk) {
    const double cpu_before = process_cpu(), machine_before = machine_cpu();
    const double start = now();
    run.iterate(per_chunk);
    const double wall = now() - start, own = process_cpu() - cpu_before;
    const double other = std::max(0.0, (machine_cpu() - machine_before - own) / wall);
    rates.push_back(static_cast<double>(per_chunk) * images / wall);
    cpu.push_back(1e3 * own / static_cast<double>(per_chunk) / images);
    if (other < s.clean) clean.push_back(rates.back());
    other_sum += other;
  }
  std::printf(
      "{\"framework\": \"poseidon\", \"net\": \"%s\", \"batch\": %.0f, \"threads\": %d, "
      "\"replicas\": %d, \"iters\": %llu, \"images_per_s\": %.2f, \"best\": %.2f, \"clean\": %.2f, "
      "\"clean_chunks\": %zu, \"chunks\": %zu, \"other_cpu\": %.2f, \"cpu_ms_per_image\": %.4f, "
      "\"loss\": %.4f, \"params\": %zu, \"rates\": [%s]}\n",
      run.compiled().train.graph.name.c_str(), images, s.replicas, s.replicas,
      static_cast<unsigned long long>(done), median(rates),
      *std::max_element(rates.begin(), rates.end()), median(clean), clean.size(), rates.size(),
      other_sum / static_cast<double>(rates.size()), median(cpu), loss_of(run),
      values_of(run.compiled().train.graph), listed(rates).c_str());
  if (s.profile) print_times(run, static_cast<double>(done));
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Training speed of the CPU backend without actors");
  app.add_option("--net", s.net, "a net of models/zoo");
  app.add_option("--solver", s.solver, "a solver prototxt");
  auto* synthetic = app.add_option("--synthetic", s.synthetic,
                                   "random images, of CxHxW where the layers state no shape")
                        ->expected(0, 1);
  app.add_option("--data-root", s.data_root, "where relative data sources start");
  app.add_option("--batch", s.batch, "images per iteration, over all replicas");
  app.add_option("--replicas", s.replicas, "lanes that share the batch")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", s.seconds, "how long to measure");
  auto* every = app.add_option("--every", s.every, "iterations of a chunk");
  app.add_option(
         "--iterations", s.iterations,
         "train these instead, in chunks from the first iteration on: kernels that skip zeros "
         "have another speed when training has gone on")
      ->needs(every);
  app.add_flag("--profile", s.profile, "CPU ms per layer of the first lane, on stderr");
  CLI11_PARSE(app, argc, argv);
  s.random_images = synthetic->count() > 0;
  try {
    if (s.net.empty() == s.solver.empty()) throw spec_error("give --net or --solver");
    measure(s);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "net_bench: %s\n", e.what());
    return 2;
  }
}
