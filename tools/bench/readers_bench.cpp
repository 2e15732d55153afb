// tools/bench/readers_bench.cpp
// Asks    How many samples of 3x224x224 a second can a data layer deliver with one thread, and with several?
// Checks  each number of threads delivers the same batch before it is timed.
// Run     readers_bench LMDB [READERS ...]        (default: 1 and the number of cores)
// Read    samples/s: the median of 9 rounds in which the numbers of threads take turns, with the median deviation, and
//         the ratio to the first. 64 samples a batch, a random crop of 224 and mirrors.
#include "data/batch_filler.hpp"
#include "data/source.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/bench/lib/lmdb_layer.hpp"
#include "tools/bench/lib/median.hpp"

namespace {
using namespace poseidon;
constexpr std::int64_t samples = 64;
constexpr int rounds = 9;

struct contender {
  std::size_t threads = 1;
  std::unique_ptr<batch_filler> filler;
  batch into;
  std::vector<double> rates;
};

double samples_s(contender& c, const sample_source& source, std::uint64_t& next) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  std::int64_t made = 0;
  std::chrono::duration<double> took{0};
  for (; took.count() < 0.5; took = clock::now() - begin, next += samples, made += samples)
    c.filler->fill(source, next, samples, c.into);
  return static_cast<double>(made) / took.count();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: readers_bench LMDB [READERS ...]");
  auto layer = lmdb_layer(argv[1], samples);
  layer.mutable_transform_param()->set_crop_size(224);
  layer.mutable_transform_param()->set_mirror(true);
  const auto source = open_source(layer, {}, {});

  std::vector<contender> all;
  for (int i = 2; i < argc; ++i) all.emplace_back().threads = std::stoul(argv[i]);
  if (all.empty()) {
    all.emplace_back();
    all.emplace_back().threads = std::max(1u, std::thread::hardware_concurrency());
  }
  for (auto& c : all) {
    c.filler = std::make_unique<batch_filler>(c.threads);
    c.filler->fill(*source, 0, samples, c.into);
    if (c.into.tops != all.front().into.tops) throw std::runtime_error("the batches differ");
  }
  std::uint64_t next = 0;
  for (int round = 0; round < rounds; ++round)
    for (auto& c : all) c.rates.push_back(samples_s(c, *source, next));
  for (const auto& c : all) {
    const double m = median(c.rates);
    std::printf("%3zu threads %9.0f samples/s (MAD %.0f, n %d)  %.2f\n", c.threads, m,
                median_deviation(c.rates), rounds, m / median(all.front().rates));
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "readers_bench: %s\n", e.what());
  return 2;
}
