#include "actors/core/core_wait.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace poseidon {

std::uint64_t core_wait_us() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(
      std::fopen("/proc/thread-self/schedstat", "re"), std::fclose);
  std::uint64_t ran_ns = 0, waited_ns = 0;
  if (!in || std::fscanf(in.get(), "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) != 2) return 0;
  return waited_ns / 1000;
}

}  // namespace poseidon
