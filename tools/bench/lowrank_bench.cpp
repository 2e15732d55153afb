// tools/bench/lowrank_bench.cpp
// Asks    What does one core pay per value of a gradient that goes as P and Q?
// Shapes  The kernels of ResNet-152 with most values (512 x 4608), one of its many small ones (256 x 1024), a square of 4096, and one whose
//         size no vector divides; ranks 4 and 8.
// Checks  nothing: models/device/lowrank_test compares the values.
// Run     lowrank_bench
// Read    ns per value of the matrix of this thread's CPU time: median and MAD of 9 repetitions.
#include "models/device/lowrank.hpp"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <vector>

#include "tools/bench/lib/median.hpp"

namespace {
using namespace poseidon;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void measure(const lowrank_shape& s, const char* name, const std::function<void()>& work) {
  work();
  std::vector<double> ns;
  for (int repetition = 0; repetition < 9; ++repetition) {
    const double start = cpu_seconds();
    std::size_t rounds = 0;
    for (; cpu_seconds() - start < 0.05; ++rounds) work();
    ns.push_back(1e9 * (cpu_seconds() - start) / static_cast<double>(rounds * s.values()));
  }
  std::printf("%5zu x %4zu, rank %zu  %-13s %6.3f ns, MAD %.3f, n = 9\n", s.rows, s.columns, s.rank,
              name, median(ns), median_deviation(ns));
}

void measure_all(const lowrank_shape& s) {
  std::vector<float> m(s.values()), out(s.values()), p(s.p_values()), q(s.q_values());
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i] = std::sin(static_cast<float>(i * 2654435761u % 1000003));
  first_q(s, {1, layer_id{0}, 0}, q);
  measure(s, "p", [&] { lowrank_p(s, m, q, p); });
  measure(s, "orthogonalise", [&] {
    auto copy = p;
    orthogonalise(s, copy);
  });
  orthogonalise(s, p);
  measure(s, "q", [&] { lowrank_q(s, m, p, q); });
  measure(s, "gradient", [&] { lowrank_gradient(s, p, q, out); });
  measure(s, "take_off", [&] {
    m.swap(out);
    lowrank_take_off(s, p, q, m);
  });
}
}  // namespace

int main() {
  for (const std::size_t rank : {4u, 8u})
    for (const auto& s : {lowrank_shape{512, 4608, rank}, lowrank_shape{256, 1024, rank},
                          lowrank_shape{4096, 4096, rank}, lowrank_shape{63, 147, rank}})
      measure_all(s);
}
