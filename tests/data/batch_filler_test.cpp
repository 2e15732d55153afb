#include "data/batch_filler.hpp"

#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <barrier>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

using namespace poseidon;
using namespace poseidon::test;

namespace {

/// Sample n is {n, n + 0.5} and the label n % 10; what `on_fill` throws is thrown.
struct counting_source final : sample_source {
  [[nodiscard]] std::uint64_t size() const override { return 1000; }
  [[nodiscard]] const std::vector<shape>& sample_shapes() const override { return shapes; }
  void fill(std::uint64_t n, std::span<const std::span<float>> tops) const override {
    on_fill(n);
    tops[0][0] = static_cast<float>(n);
    tops[0][1] = static_cast<float>(n) + 0.5f;
    tops[1][0] = static_cast<float>(n % 10);
  }

  std::vector<shape> shapes{{2}, {}};
  std::function<void(std::uint64_t)> on_fill = [](std::uint64_t) {};
};

void check_samples(const batch& b, std::uint64_t first, std::size_t samples) {
  CHECK(b.first_sample == first);
  REQUIRE(b.tops.size() == 2);
  REQUIRE(b.tops[0].size() == 2 * samples);
  REQUIRE(b.tops[1].size() == samples);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    const auto n = static_cast<float>(first + i);
    wrong += b.tops[0][2 * i] != n || b.tops[0][2 * i + 1] != n + 0.5f ||
             b.tops[1][i] != static_cast<float>((first + i) % 10);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("batch_filler: however many threads, each sample lies in its place") {
  const counting_source source;
  for (const std::size_t threads : {1, 2, 3, 8}) {
    CAPTURE(threads);
    batch_filler filler(threads);
    batch b;
    std::uint64_t first = 7;
    for (const std::int64_t samples : {1, 2, 5, 64, 0, 3}) {
      filler.fill(source, first, samples, b);
      check_samples(b, first, static_cast<std::size_t>(samples));
      first += 100;
    }
  }
}

TEST_CASE("batch_filler: all its threads fill at once") {
  counting_source source;
  constexpr std::size_t threads = 4;
  std::barrier all(threads);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  source.on_fill = [&](std::uint64_t) {
    all.arrive_and_wait();  // continues only when all threads have arrived
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  };
  batch_filler filler(threads);
  batch b;
  filler.fill(source, 0, 3 * threads, b);
  check_samples(b, 0, 3 * threads);
  CHECK(seen.size() == threads);
  CHECK(seen.count(std::this_thread::get_id()) == 1);
}

TEST_CASE(
    "batch_filler: of several broken samples the first is told, and the next batch is whole") {
  counting_source source;
  for (const std::size_t threads : {1, 2, 4}) {
    CAPTURE(threads);
    batch_filler filler(threads);
    batch b;
    for (int repetition = 0; repetition < 50; ++repetition) {
      source.on_fill = [](std::uint64_t n) {
        if (n >= 13) throw std::runtime_error("sample " + std::to_string(n));
      };
      CHECK_THROWS_WITH(filler.fill(source, 10, 64, b), "sample 13");
      source.on_fill = [](std::uint64_t) {};
      filler.fill(source, 20, 16, b);
      check_samples(b, 20, 16);
    }
  }
}

TEST_CASE(
    "batch_filler: as many threads as a device's own leave free, and one beside a computing "
    "replica") {
  CHECK(default_readers(false, 1, 64) == 1);
  CHECK(default_readers(false, 8, 8) == 1);
  CHECK(default_readers(true, 1, 2) == 1);
  CHECK(default_readers(true, 1, 16) == 14);
  CHECK(default_readers(true, 2, 16) == 6);
  CHECK(default_readers(true, 8, 16) == 1);
  CHECK(default_readers(true, 1, 128) == 16);
  CHECK(default_readers(true, 0, 0) == 1);
}

TEST_CASE("fill_batch: samples follow each other, wrap in mid-batch, and memory is reused") {
  temporary_folder folder;
  make_image_lmdb(folder / "db", 5, {1, 3, 3});
  const auto source = open_source(data_layer((folder / "db").string()), here(), {});
  batch b;
  fill_batch(*source, 3, 4, b);
  CHECK(b.first_sample == 3);
  REQUIRE(b.tops.size() == 2);
  REQUIRE(b.tops[0].size() == 36);
  CHECK(b.tops[1] == host_values{3, 4, 0, 1});
  for (std::size_t i = 0; i < 36; ++i)
    CHECK(b.tops[0][i] == static_cast<float>(pixel((3 + i / 9) % 5, i % 9)));
  const auto* memory = b.tops[0].data();
  fill_batch(*source, 5'000'000'007, 4, b);  // beyond 32 bits; 5 000 000 007 % 5 == 2
  CHECK(b.tops[0].data() == memory);
  CHECK(b.tops[1] == host_values{2, 3, 4, 0});
}
