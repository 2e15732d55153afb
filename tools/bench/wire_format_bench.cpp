// tools/bench/wire_format_bench.cpp
// Asks    What does one core pay per value to round a gradient with its error memory, and to add what has come, in each format?
// Shapes  A chunk of 131072 values, which stays in the second-level cache with its bytes; and 64 Mi values, which come from memory.
// Checks  that both ways of int8 and int4 give one value before timing; the tests compare them in every place.
// Run     wire_format_bench
// Read    ns per value of this thread's CPU time: median and MAD of 9 repetitions. `memcpy` copies the values as they are.
#include "models/device/block_format.hpp"
#include "models/device/wire_format.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/bench/lib/median.hpp"

namespace {
using namespace poseidon;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void measure(const std::string& name, std::size_t values, const std::function<void()>& work) {
  work();
  std::vector<double> ns;
  for (int repetition = 0; repetition < 9; ++repetition) {
    const double start = cpu_seconds();
    std::size_t rounds = 0;
    for (; cpu_seconds() - start < 0.2; ++rounds) work();
    ns.push_back(1e9 * (cpu_seconds() - start) / static_cast<double>(rounds * values));
  }
  std::printf("%9zu values  %-28s %7.3f ns, MAD %.3f, n = 9\n", values, name.c_str(), median(ns),
              median_deviation(ns));
}

void measure_all(std::size_t n) {
  std::vector<float> gradient(n), residual(n), copy(n);
  for (std::size_t i = 0; i < n; ++i)
    gradient[i] = 1e-3f * std::sin(static_cast<float>(i * 2654435761u % 1000003));
  measure("memcpy", n, [&] { std::memcpy(copy.data(), gradient.data(), 4 * n); });
  for (std::size_t f = 1; f < wire_formats; ++f) {
    const auto format = static_cast<wire_format>(f);
    const std::string name(to_string(format));
    std::vector<std::byte> bytes(wire_bytes(format, n));
    measure(name + " encode_with_feedback", n,
            [&] { encode_with_feedback(format, gradient, residual, bytes); });
    measure(name + " encode_change", n, [&] { encode_change(format, gradient, copy, bytes); });
    measure(name + " add_decoded", n, [&] { add_decoded(format, bytes, copy, copy); });
    if (!has_blocks(format)) continue;
    const auto portable = portable_block_codec();
    measure(name + " portable, with feedback", n, [&] {
      portable.encode(format, block_source::sum, gradient.data(), residual.data(), n, bytes.data(),
                      residual.data());
    });
    measure(name + " portable, add", n,
            [&] { portable.decode(format, bytes.data(), n, copy.data(), copy.data()); });
  }
}
}  // namespace

int main() {
  const std::vector<float> values{1, -0.3f, 0.01f};
  for (const auto f : {wire_format::int8, wire_format::int4}) {
    std::vector<std::byte> fast(wire_bytes(f, 3)), plain(fast);
    encode(f, values, fast);
    portable::encode(f, values, plain);
    if (fast != plain) throw std::runtime_error("the two ways differ");
  }
  measure_all(std::size_t{128} << 10);
  measure_all(std::size_t{64} << 20);
}
