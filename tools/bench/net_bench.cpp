// tools/bench/net_bench.cpp
// Asks    How many images per second does the bare sequence feed, forward, backward, add, update
//         reach? What actors add to it shows against this; PyTorch's step is measured by a script
//         of the same form.
// Nets    lenet (batch 64), cifar10_quick (batch 100), as BVLC Caffe's examples define them, or any
//         prototxt.
// Run     net_bench --net lenet --replicas 2 --seconds 8    one line of JSON
//         net_bench --net lenet --profile                   and on stderr CPU ms per layer
// Read    images_per_s is the median chunk, best the fastest, clean the median of chunks during
//         which other processes used less than 0.08 of a core; cpu_ms_per_image counts all threads
//         and is the figure that a busy machine disturbs least.
#include "cpu/cpu_device.hpp"
#include "models/net_builder.hpp"
#include "models/net_file.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace {

using namespace poseidon;

std::string input_layer(int batch, const std::string& extents) {
  const std::string b = std::to_string(batch);
  return "layer { name: 'data' type: 'Input' top: 'data' top: 'label' input_param {"
         " shape { dim: " +
         b + " " + extents + " } shape { dim: " + b + " } } }\n";
}

std::string convolution(const std::string& name, const std::string& bottom, int outputs, int pad) {
  return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + name +
         "' param { lr_mult: 1 } param { lr_mult: 2 } convolution_param { num_output: " +
         std::to_string(outputs) + " kernel_size: 5 pad: " + std::to_string(pad) +
         " weight_filler { type: 'xavier' } } }\n";
}

std::string pooling(const std::string& name, const std::string& bottom, const std::string& how,
                    int size) {
  return "layer { name: '" + name + "' type: 'Pooling' bottom: '" + bottom + "' top: '" + name +
         "' pooling_param { pool: " + how + " kernel_size: " + std::to_string(size) +
         " stride: 2 } }\n";
}

std::string inner_product(const std::string& name, const std::string& bottom, int outputs) {
  return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" +
         name + "' param { lr_mult: 1 } param { lr_mult: 2 } inner_product_param { num_output: " +
         std::to_string(outputs) + " weight_filler { type: 'xavier' } } }\n";
}

std::string relu(const std::string& name, const std::string& blob) {
  return "layer { name: '" + name + "' type: 'ReLU' bottom: '" + blob + "' top: '" + blob + "' }\n";
}

std::string loss(const std::string& bottom) {
  return "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" + bottom +
         "' bottom: 'label' top: 'loss' }\n";
}

std::string lenet(int batch) {
  return "name: 'lenet'\n" + input_layer(batch, "dim: 1 dim: 28 dim: 28") +
         convolution("conv1", "data", 20, 0) + pooling("pool1", "conv1", "MAX", 2) +
         convolution("conv2", "pool1", 50, 0) + pooling("pool2", "conv2", "MAX", 2) +
         inner_product("ip1", "pool2", 500) + relu("relu1", "ip1") +
         inner_product("ip2", "ip1", 10) + loss("ip2");
}

std::string cifar10_quick(int batch) {
  return "name: 'cifar10_quick'\n" + input_layer(batch, "dim: 3 dim: 32 dim: 32") +
         convolution("conv1", "data", 32, 2) + pooling("pool1", "conv1", "MAX", 3) +
         relu("relu1", "pool1") + convolution("conv2", "pool1", 32, 2) + relu("relu2", "conv2") +
         pooling("pool2", "conv2", "AVE", 3) + convolution("conv3", "pool2", 64, 2) +
         relu("relu3", "conv3") + pooling("pool3", "conv3", "AVE", 3) +
         inner_product("ip1", "pool3", 64) + inner_product("ip2", "ip1", 10) + loss("ip2");
}

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
double thread_cpu() {
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
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

struct layer_time {
  double forward = 0, backward = 0;
};

struct settings {
  std::string net = "lenet";
  int batch = 0, replicas = 1, threads = 1;
  double seconds = 8, chunk = 0.5, clean = 0.08;
  std::string input = "3x224x224";
  bool profile = false;
};

std::vector<std::int64_t> extents_of(const std::string& text, std::int64_t batch) {
  std::vector<std::int64_t> s{batch};
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) s.push_back(std::stoll(part));
  return s;
}

net load(const settings& s, int batch) {
  build_options options;
  options.sources = [&](const ::caffe::LayerParameter& layer, const spec_position&) {
    std::vector<shape> shapes{extents_of(s.input, batch)};
    if (layer.top_size() > 1) shapes.push_back({batch});
    return shapes;
  };
  if (s.net == "lenet") return build_net(parse_net(lenet(batch), "lenet"), options);
  if (s.net == "cifar10_quick")
    return build_net(parse_net(cifar10_quick(batch), "cifar10_quick"), options);
  return build_net(read_net(s.net), options);
}

/// R replicas over one set of parameters; every lane is one thread.
class training {
 public:
  training(const settings& s, const net& n) : settings_(s), net_(n), device_(make_cpu_device()) {
    for (std::size_t p = 0; p < n.parameters.size(); ++p) {
      values_.emplace_back(static_cast<std::size_t>(count(n.parameters[p].shape)));
      history_.emplace_back(values_.back().size());
      initialise(n.parameters[p], values_.back(), static_cast<std::uint32_t>(p));
      holders_.push_back(std::make_unique<parameter_values>());
      holders_.back()->values = values_.back().data();
      pointers_.push_back(holders_.back().get());
    }
    for (int r = 0; r < s.replicas; ++r) {
      replicas_.push_back(device_->make_replica(n, pointers_, {s.threads, false}));
      make_input(static_cast<std::uint32_t>(r));
    }
    times_.resize(n.layers.size());
  }

  void run(int iterations) {
    std::barrier<> all(settings_.replicas);
    std::vector<std::jthread> lanes;
    for (int r = 1; r < settings_.replicas; ++r) {
      lanes.emplace_back(
          [this, r, iterations, &all] { lane(static_cast<std::size_t>(r), iterations, all); });
    }
    lane(0, iterations, all);
  }

  [[nodiscard]] float loss() const {
    float v = 0;
    for (const net_layer& l : net_.layers) {
      if (l.type == "SoftmaxWithLoss") replicas_[0]->read_data(l.tops[0], {&v, 1});
    }
    return v;
  }
  [[nodiscard]] std::size_t parameter_count() const {
    std::size_t sum = 0;
    for (const auto& v : values_) sum += v.size();
    return sum;
  }
  void reset_times() { times_.assign(times_.size(), {}), update_time_ = 0; }
  void print_times(double iterations) const {
    for (std::size_t i = 0; i < times_.size(); ++i) {
      std::fprintf(stderr, "%-24s %-16s forward %9.3f ms  backward %9.3f ms\n",
                   net_.layers[i].name.c_str(), net_.layers[i].type.c_str(),
                   1e3 * times_[i].forward / iterations, 1e3 * times_[i].backward / iterations);
    }
    std::fprintf(stderr, "%-24s %-16s         %9.3f ms\n", "update", "",
                 1e3 * update_time_ / iterations);
  }

 private:
  /// Uniform with the variance 1 / fan-in, which keeps values in their range; a bias stays zero.
  static void initialise(const net_parameter& p, std::vector<float>& values, std::uint32_t seed) {
    if (p.shape.size() < 2) return;
    std::mt19937 random(seed + 1);
    const float bound = std::sqrt(3.0f / static_cast<float>(count(p.shape, 1, p.shape.size())));
    std::uniform_real_distribution<float> uniform(-bound, bound);
    for (float& w : values) w = uniform(random);
  }

  void make_input(std::uint32_t seed) {
    std::mt19937 random(seed + 1);
    std::normal_distribution<float> normal;
    for (const net_layer& l : net_.layers) {
      if (!is_source(l)) continue;
      batch b;
      for (std::size_t t = 0; t < l.tops.size(); ++t) {
        b.tops.emplace_back(static_cast<std::size_t>(count(net_.blobs[l.tops[t]].shape)));
        for (float& v : b.tops.back())
          v = t == 0 ? normal(random) : static_cast<float>(random() % 10);
      }
      inputs_.push_back(std::move(b));
    }
  }

  void lane(std::size_t r, int iterations, std::barrier<>& all) {
    device_->enter_thread(settings_.threads);
    replica& own = *replicas_[r];
    const std::size_t sources = inputs_.size() / replicas_.size();
    const bool timed = settings_.profile && r == 0;
    for (int i = 0; i < iterations; ++i) {
      const pass p{static_cast<std::uint64_t>(i), 0, 1};
      std::size_t source = r * sources;
      for (std::size_t l = 0; l < net_.layers.size(); ++l) {
        const double start = timed ? thread_cpu() : 0;
        if (is_source(net_.layers[l])) own.at(l).feed(inputs_[source++]);
        own.at(l).forward(p);
        if (timed) times_[l].forward += thread_cpu() - start;
      }
      for (std::size_t l = net_.layers.size(); l-- > 0;) {
        if (!net_.layers[l].needs_backward) continue;
        const double start = timed ? thread_cpu() : 0;
        own.at(l).backward(p);
        if (timed) times_[l].backward += thread_cpu() - start;
      }
      all.arrive_and_wait();
      const double start = timed ? thread_cpu() : 0;
      update(r);
      if (timed) update_time_ += thread_cpu() - start;
      all.arrive_and_wait();
      if (r == 0) {
        for (auto& h : holders_) ++h->version;
      }
      all.arrive_and_wait();
    }
  }

  /// Each lane updates its part of every parameter, all replicas' gradients added in their order.
  void update(std::size_t r) {
    const auto lanes = replicas_.size();
    const solver_rule rule{rule_kind::sgd, regularizer::l2, 0.9f, 0, 0, 0};
    for (std::size_t p = 0; p < values_.size(); ++p) {
      const std::size_t size = values_[p].size();
      const std::size_t from = size * r / lanes;
      const std::size_t length = size * (r + 1) / lanes - from;
      const auto sum = replicas_[0]->gradient(p).subspan(from, length);
      for (std::size_t o = 1; o < lanes; ++o)
        device_->add(sum, replicas_[o]->gradient(p).subspan(from, length));
      const rule_step step{0, 1e-4f * net_.parameters[p].lr_mult,
                           5e-4f * net_.parameters[p].decay_mult, 1.0f / static_cast<float>(lanes)};
      const std::span<float> values = std::span(values_[p]).subspan(from, length);
      const std::span<float> history = std::span(history_[p]).subspan(from, length);
      device_->update(rule, step, sum, values, values, {&history, 1});
    }
  }

  const settings& settings_;
  const net& net_;
  std::shared_ptr<device> device_;
  std::vector<std::vector<float>> values_, history_;
  std::vector<std::unique_ptr<parameter_values>> holders_;
  std::vector<const parameter_values*> pointers_;
  std::vector<batch> inputs_;
  std::vector<std::unique_ptr<replica>> replicas_;
  std::vector<layer_time> times_;
  double update_time_ = 0;
};

double median(std::vector<double> v) {
  if (v.empty()) return -1;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void measure(const settings& s, const net& n, int batch) {
  training t(s, n);
  t.run(3);
  double start = now();
  t.run(1);
  const double per = now() - start;
  const int per_chunk = std::max(1, static_cast<int>(s.chunk / per + 0.5));
  const int iterations = std::max(3, static_cast<int>(s.seconds / per));
  t.reset_times();
  std::vector<double> rates, clean, cpu;
  double other_sum = 0;
  int done = 0;
  for (; done < iterations; done += per_chunk) {
    const double cpu_before = process_cpu(), machine_before = machine_cpu();
    start = now();
    t.run(per_chunk);
    const double wall = now() - start, own = process_cpu() - cpu_before;
    const double other = std::max(0.0, (machine_cpu() - machine_before - own) / wall);
    rates.push_back(per_chunk * batch / wall);
    cpu.push_back(1e3 * own / per_chunk / batch);
    if (other < s.clean) clean.push_back(rates.back());
    other_sum += other;
  }
  std::printf(
      "{\"framework\": \"poseidon\", \"net\": \"%s\", \"batch\": %d, \"threads\": %d, "
      "\"replicas\": %d, "
      "\"iters\": %d, \"images_per_s\": %.2f, \"best\": %.2f, \"clean\": %.2f, \"clean_chunks\": "
      "%zu, "
      "\"chunks\": %zu, \"other_cpu\": %.2f, \"cpu_ms_per_image\": %.4f, \"loss\": %.4f, "
      "\"params\": %zu}\n",
      n.name.c_str(), batch, s.replicas * s.threads, s.replicas, done, median(rates),
      *std::max_element(rates.begin(), rates.end()), median(clean), clean.size(), rates.size(),
      other_sum / static_cast<double>(rates.size()), median(cpu), static_cast<double>(t.loss()),
      t.parameter_count());
  if (s.profile) t.print_times(done);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Training speed of the CPU backend without actors");
  app.add_option("--net", s.net, "lenet, cifar10_quick or a prototxt");
  app.add_option("--batch", s.batch,
                 "images per iteration, over all replicas (0: 64, 100 for cifar10_quick)");
  app.add_option("--replicas", s.replicas, "lanes that share the batch")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", s.threads, "OpenMP threads of each lane")->check(CLI::PositiveNumber);
  app.add_option("--seconds", s.seconds, "how long to measure");
  app.add_option("--input", s.input, "extents of an image, for the data layers of a prototxt");
  app.add_flag("--profile", s.profile, "CPU ms per layer of the first lane, on stderr");
  CLI11_PARSE(app, argc, argv);
  try {
    const int batch = s.batch > 0 ? s.batch : s.net == "cifar10_quick" ? 100 : 64;
    if (batch % s.replicas != 0) {
      std::fprintf(stderr, "net_bench: batch %d does not divide over %d replicas\n", batch,
                   s.replicas);
      return 2;
    }
    const net n = load(s, batch / s.replicas);
    measure(s, n, batch);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "net_bench: %s\n", e.what());
    return 2;
  }
}
