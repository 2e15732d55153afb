// tools/bench/checksum_bench.cpp
// Asks    How many bytes per second does one core check, with the instruction of SSE4.2 and without?
// Shapes  The pieces of a link, 256 KiB: one that stays in the cache, and 256 in turn, which come from memory.
// Checks  that both forms give one value before timing.
// Run     checksum_bench
// Read    GB/s of this thread's CPU time: median and MAD of 9 repetitions.
#include "messages/wire/checksum.hpp"
#include "messages/wire/codec.hpp"

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <vector>

#include "tools/bench/lib/median.hpp"

namespace {
using namespace poseidon;
using form = std::uint32_t (*)(std::span<const std::byte>, std::uint32_t);

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void measure(const char* name, form sum, const std::vector<std::byte>& data, double seconds) {
  const auto piece = [&](std::size_t i) {
    return std::span(data).subspan(i * piece_bytes % data.size(), piece_bytes);
  };
  std::uint32_t all = 0;
  std::vector<double> rates;
  for (int repetition = 0; repetition < 9; ++repetition) {
    const double start = cpu_seconds();
    std::size_t pieces = 0;
    while (cpu_seconds() - start < seconds)
      for (int i = 0; i < 16; ++i) all += sum(piece(pieces++), 0);
    rates.push_back(static_cast<double>(pieces * piece_bytes) / (cpu_seconds() - start) / 1e9);
  }
  std::printf("%-10s %4zu pieces in turn: %6.2f GB/s, MAD %.2f, n = 9 (%08x)\n", name,
              data.size() / piece_bytes, median(rates), median_deviation(rates), all);
}
}  // namespace

int main() {
  std::vector<std::byte> data(256 * piece_bytes);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  if (crc32c(data) != crc32c_portable(data)) throw std::runtime_error("the two forms differ");
  const std::vector<std::byte> one(data.begin(), data.begin() + piece_bytes);
  measure("crc32c", crc32c, one, 0.5);
  measure("crc32c", crc32c, data, 0.5);
  measure("portable", crc32c_portable, one, 0.5);
}
