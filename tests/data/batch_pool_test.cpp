#include "data/batch_pool.hpp"

#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace poseidon;
using namespace poseidon::test;

TEST_CASE("batch_pool: no more buffers than it has, and one comes home with the last reference") {
  int came_home = 0;
  batch_pool pool(2, [&] { ++came_home; });
  auto a = pool.try_take();
  auto b = pool.try_take();
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  CHECK(a != b);
  CHECK(pool.try_take() == nullptr);
  const batch* memory = a.get();
  std::shared_ptr<const batch> first = a, second = a;
  a.reset();
  first.reset();
  CHECK(pool.free() == 0);
  CHECK(came_home == 0);
  second.reset();
  CHECK(pool.free() == 1);
  CHECK(came_home == 1);
  CHECK(pool.try_take().get() == memory);
}

TEST_CASE("batch_pool: a buffer may outlive its pool, and an empty pool gives nothing") {
  std::shared_ptr<batch> kept;
  {
    batch_pool pool(1);
    kept = pool.try_take();
  }
  kept->first_sample = 3;
  CHECK(batch_pool(0).try_take() == nullptr);
}

TEST_CASE("batch_pool: from several threads at once, no buffer is ever in two hands") {
  batch_pool pool(3);
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (std::uint64_t who = 1; who <= 4; ++who)
    threads.emplace_back([&, who] {
      for (int i = 0; i < 5000; ++i) {
        auto mine = pool.try_take();
        if (!mine) continue;
        mine->first_sample = who;
        mine->tops.assign(1, host_values(4, static_cast<float>(who)));
        std::shared_ptr<const batch> sent = std::move(mine);
        if (sent->first_sample != who || sent->tops[0][3] != static_cast<float>(who)) ++torn;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(torn == 0);
  CHECK(pool.free() == 3);
}
