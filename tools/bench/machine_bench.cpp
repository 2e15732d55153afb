// tools/bench/machine_bench.cpp
//
// Asks    How many operations and how many bytes a second can this processor do at most, with T threads at once?
// Shapes  multiply-adds on registers alone, in the widest vectors that the processor has, float32 and bfloat16; a loop that reads
//         two arrays of 64 MiB a thread and writes a third one.
// Checks  nothing.
// Run     machine_bench --threads 2        one line of JSON
// Reads   the best of the rounds: a bound is what nothing has disturbed. bf16_gflops is 0 where the processor has no such products. Bytes
//         are those that the loop asks for: an ordinary store also reads its line first, which is not counted.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <immintrin.h>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int chains = 14;  // as many products as are under way at once: latency times units
constexpr std::int64_t products = 1 << 20;
constexpr std::size_t values = std::size_t{16} << 20;  // of one array

/// Keeps a value in a register, unknown to the compiler.
#define POSEIDON_OPAQUE(v) asm volatile("" : "+v"(v))

__attribute__((target("avx2,fma"))) double fma_256() {
  __m256 sums[chains] = {}, a = _mm256_set1_ps(1), b = _mm256_set1_ps(0);
  for (auto& s : sums) POSEIDON_OPAQUE(s);
  POSEIDON_OPAQUE(a);
  POSEIDON_OPAQUE(b);
  for (std::int64_t i = 0; i < products; ++i)
    for (auto& s : sums) s = _mm256_fmadd_ps(a, b, s);
  for (auto& s : sums) POSEIDON_OPAQUE(s);
  return 2.0 * 8 * chains * products;
}

__attribute__((target("avx512f"))) double fma_512() {
  __m512 sums[chains] = {}, a = _mm512_set1_ps(1), b = _mm512_set1_ps(0);
  for (auto& s : sums) POSEIDON_OPAQUE(s);
  POSEIDON_OPAQUE(a);
  POSEIDON_OPAQUE(b);
  for (std::int64_t i = 0; i < products; ++i)
    for (auto& s : sums) s = _mm512_fmadd_ps(a, b, s);
  for (auto& s : sums) POSEIDON_OPAQUE(s);
  return 2.0 * 16 * chains * products;
}

__attribute__((target("avx512f,avx512bf16"))) double dot_bf16() {
  __m512 sums[chains] = {};
  auto a = (__m512bh)_mm512_set1_epi16(0x3f80), b = (__m512bh)_mm512_set1_epi16(0);
  for (auto& s : sums) POSEIDON_OPAQUE(s);
  POSEIDON_OPAQUE(a);
  POSEIDON_OPAQUE(b);
  for (std::int64_t i = 0; i < products; ++i)
    for (auto& s : sums) s = _mm512_dpbf16_ps(s, a, b);
  for (auto& s : sums) POSEIDON_OPAQUE(s);
  return 2.0 * 32 * chains * products;
}

class arrays {
 public:
  arrays() : a_(made()), b_(made()), c_(made()) {}

  /// The bytes that it has read and written.
  double add() const {
    for (std::size_t i = 0; i < values; ++i) c_[i] = a_[i] + 0.5F * b_[i];
    asm volatile("" : : "r"(c_.get()) : "memory");
    return 3.0 * sizeof(float) * values;
  }

 private:
  struct freed {
    void operator()(float* p) const { std::free(p); }
  };
  using memory = std::unique_ptr<float[], freed>;
  static memory made() {
    memory m(static_cast<float*>(std::aligned_alloc(4096, values * sizeof(float))));
    std::fill_n(m.get(), values, 1.0F);
    return m;
  }
  memory a_, b_, c_;
};

/// What all threads do in a second, at best: each says how much its call did. All begin a round together.
double best_rate(int threads, int rounds, const std::function<std::function<double()>()>& make) {
  using clock = std::chrono::steady_clock;
  std::vector<double> done(static_cast<std::size_t>(threads)), seconds(done.size());
  double best = 0;
  const auto sum = [&]() noexcept {
    double rate = 0;
    for (std::size_t t = 0; t < done.size(); ++t) rate += done[t] / seconds[t];
    best = std::max(best, rate);
  };
  std::barrier begin(threads);
  std::barrier end(threads, sum);
  std::vector<std::jthread> running;
  for (std::size_t t = 0; t < done.size(); ++t)
    running.emplace_back([&, t] {
      const auto work = make();
      for (int round = 0; round < rounds; ++round) {
        begin.arrive_and_wait();
        const auto began = clock::now();
        done[t] = work();
        seconds[t] = std::chrono::duration<double>(clock::now() - began).count();
        end.arrive_and_wait();
      }
    });
  running.clear();
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1, rounds = 20;
  CLI::App app("What a processor can do at most");
  app.add_option("--threads", threads, "that work at once")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "of each loop")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const bool wide = __builtin_cpu_supports("avx512f"), bf16 = __builtin_cpu_supports("avx512bf16");
  const auto flops = best_rate(threads, rounds, [&] { return wide ? fma_512 : fma_256; });
  const auto products_of_bf16 = bf16 ? best_rate(threads, rounds, [] { return dot_bf16; }) : 0;
  const auto bytes = best_rate(
      threads, rounds, [] { return [of = std::make_shared<arrays>()] { return of->add(); }; });
  std::printf("{\"threads\": %d, \"gflops\": %.1f, \"bf16_gflops\": %.1f, \"gb_s\": %.1f}\n",
              threads, 1e-9 * flops, 1e-9 * products_of_bf16, 1e-9 * bytes);
}
