// tools/bench/fill_batch_bench.cpp
// Asks    How much CPU time does it take to deliver one LeNet batch, 64 images of 28x28, from an
//         LMDB?
// Checks  the batch against a second source on the same LMDB before timing.
// Run     fill_batch_bench LMDB [MEAN.binaryproto]
// Read    microseconds of this thread's CPU time per batch: median and MAD of 9 repetitions of 500
//         batches, for scale alone, crop + mirror, and (if given) the mean image.
#include "data/batch_filler.hpp"
#include "data/source.hpp"

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "tools/bench/lib/lmdb_layer.hpp"
#include "tools/bench/lib/median.hpp"

namespace {
using namespace poseidon;
constexpr std::int64_t samples = 64;

double cpu_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

void measure(const char* name, const ::caffe::LayerParameter& layer) {
  const auto source = open_source(layer, {}, {});
  batch b, check;
  fill_batch(*source, 0, samples, b);
  fill_batch(*open_source(layer, {}, {}), 0, samples, check);
  if (b.tops != check.tops) throw std::runtime_error("two sources on one LMDB differ");
  std::vector<double> us;
  std::uint64_t next = 0;
  for (int repetition = 0; repetition < 9; ++repetition) {
    const double start = cpu_us();
    for (int i = 0; i < 500; ++i, next += samples) fill_batch(*source, next, samples, b);
    us.push_back((cpu_us() - start) / 500);
  }
  std::printf("%-16s %7.1f us per batch (MAD %.1f, n 9)\n", name, median(us), median_deviation(us));
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: fill_batch_bench LMDB [MEAN.binaryproto]");
  auto layer = lmdb_layer(argv[1], samples);
  auto* transform = layer.mutable_transform_param();
  transform->set_scale(0.00390625f);
  measure("scale", layer);
  if (argc > 2) {
    transform->set_mean_file(argv[2]);
    measure("mean image", layer);
    transform->clear_mean_file();
  }
  transform->set_crop_size(24);
  transform->set_mirror(true);
  measure("crop 24, mirror", layer);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "fill_batch_bench: %s\n", e.what());
  return 2;
}
