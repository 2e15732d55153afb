// Pinned memory may go while threads that have used it end: the last of them gives it back, and ends a moment later.
#include "gpu/host_memory.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <memory_resource>
#include <thread>
#include <vector>

using namespace poseidon;

TEST_CASE("host_memory: it may go while a thread that has used it is still ending") {
  constexpr int threads_at_once = 8;
  for (int round = 0; round < 500; ++round) {
    auto memory = gpu::make_host_memory();
    std::atomic<int> still_use_it{threads_at_once};
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_at_once; ++i)
      threads.emplace_back([&still_use_it, resource = memory.get()] {
        for (const std::size_t bytes : {16, 4096}) {
          auto* const at = resource->allocate(bytes);
          resource->deallocate(at, bytes);
        }
        --still_use_it;
      });
    while (still_use_it > 0) std::this_thread::yield();
    memory.reset();
    for (auto& t : threads) t.join();
  }
}
