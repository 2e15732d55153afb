#include "data/sample_schedule.hpp"

#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>

using namespace poseidon;

namespace {
/// Calls f(pass) for every pass of `clocks` clocks, in the order in which one node would make them.
template <class Function>
void for_each_pass(const sample_schedule& s, std::uint64_t clocks, Function f) {
  for (std::uint64_t c = 0; c < clocks; ++c)
    for (std::uint64_t w = 0; w < s.workers; ++w)
      for (std::uint64_t m = 0; m < s.micro_batches; ++m)
        for (std::uint64_t r = 0; r < s.replicas; ++r) f(train_pass{c, w, m, r});
}
}  // namespace

TEST_CASE(
    "sample_schedule: each sample exactly once per epoch, for any workers, micro-batches, "
    "replicas") {
  for (const std::uint64_t p : {1, 2, 3, 5})
    for (const std::uint64_t i : {1, 2, 4})
      for (const std::uint64_t r : {1, 2, 3})
        for (const std::uint64_t b : {1, 4, 7}) {
          const sample_schedule s{p, i, r, b};
          // Epochs as long as several whole clocks and a bit, so that batches wrap in their middle.
          const auto size = 3 * s.samples_per_clock() + 1;
          const auto clocks = size;  // lcm of the two, enough for whole epochs
          std::vector<int> used(size, 0);
          std::uint64_t next = 0;
          for_each_pass(s, clocks, [&](const train_pass& pass) {
            const auto first = first_sample(s, pass);
            CHECK(first == next);  // no gap, no overlap
            for (std::uint64_t n = 0; n < b; ++n) ++used[epoch_position(first + n, size)];
            next = first + b;
          });
          const auto epochs = static_cast<int>(s.samples_per_clock());
          CHECK(std::count(used.begin(), used.end(), epochs) == static_cast<long>(size));
        }
}

TEST_CASE("sample_schedule: N nodes read what one node with iter_size N reads, pass by pass") {
  for (const std::uint64_t n : {2, 3, 4})
    for (std::uint64_t c = 0; c < 5; ++c)
      for (std::uint64_t w = 0; w < n; ++w)
        CHECK(first_sample({n, 1, 1, 64}, {c, w, 0, 0}) ==
              first_sample({1, n, 1, 64}, {c, 0, w, 0}));
  // Also where each node has an iter_size of its own.
  for (std::uint64_t w = 0; w < 3; ++w)
    for (std::uint64_t m = 0; m < 2; ++m)
      CHECK(first_sample({3, 2, 1, 8}, {4, w, m, 0}) ==
            first_sample({1, 6, 1, 8}, {4, 0, w * 2 + m, 0}));
}

TEST_CASE("sample_schedule: two replicas of one node read what two nodes read") {
  for (std::uint64_t c = 0; c < 5; ++c)
    for (std::uint64_t r = 0; r < 2; ++r)
      CHECK(first_sample({1, 1, 2, 32}, {c, 0, 0, r}) == first_sample({2, 1, 1, 32}, {c, r, 0, 0}));
}

TEST_CASE("test_share: every test batch is done once, by any number of workers and replicas") {
  for (const std::uint64_t batches : {0u, 1u, 5u, 8u, 100u})
    for (const std::uint64_t workers : {1u, 2u, 3u, 4u})
      for (const std::uint64_t replicas : {1u, 2u, 3u}) {
        std::multiset<std::uint64_t> done;
        for (std::uint64_t w = 0; w < workers; ++w) {
          const test_share share{batches, workers, w, replicas};
          for (std::uint64_t r = 0; r < replicas; ++r)
            for (std::uint64_t n = 0; n < share.passes(r); ++n) done.insert(share.batch(r, n));
        }
        CHECK(done.size() == batches);
        if (batches > 0) CHECK(*done.rbegin() == batches - 1);
        CHECK(std::set<std::uint64_t>(done.begin(), done.end()).size() == batches);
      }
}

TEST_CASE("test_share: each phase reads on from where the one before it stopped") {
  const std::uint64_t batches = 5, size = 10;
  std::set<std::uint64_t> firsts;
  for (std::uint64_t phase = 0; phase < 3; ++phase)
    for (std::uint64_t worker = 0; worker < 2; ++worker) {
      const test_share share{batches, 2, worker, 2, size};
      for (std::uint64_t r = 0; r < 2; ++r)
        for (std::uint64_t n = 0; n < share.passes(r); ++n) {
          const auto first = share.first_sample(phase, r, n);
          CHECK(first / (batches * size) == phase);
          firsts.insert(first);
        }
    }
  CHECK(firsts.size() == 3 * batches);
  CHECK(*firsts.begin() == 0);
  CHECK(*firsts.rbegin() == 3 * batches * size - size);
}

TEST_CASE("sample_schedule: a resumed run goes on where it stopped, on any number of nodes") {
  const sample_schedule one{1, 4, 1, 8};
  const auto used = 3 * one.samples_per_clock();
  for (const std::uint64_t workers : {1u, 2u, 4u}) {
    const auto micro = 4 / workers;
    const sample_schedule more{workers, micro, 1, 8, used};
    for (std::uint64_t w = 0; w < workers; ++w)
      for (std::uint64_t m = 0; m < micro; ++m)
        CHECK(first_sample(more, {2, w, m, 0}) == first_sample(one, {5, 0, w * micro + m, 0}));
  }
}

TEST_CASE(
    "sample_schedule: a worker, micro-batch or replica beyond the schedule's is refused with "
    "both") {
  const sample_schedule s{2, 3, 1, 8};
  CHECK_THROWS_WITH((void)first_sample(s, {0, 2, 0, 0}), "worker 2 is beyond the schedule's 2");
  CHECK_THROWS_WITH((void)first_sample(s, {0, 0, 3, 0}),
                    "micro-batch 3 is beyond the schedule's 3");
  CHECK_THROWS_WITH((void)first_sample(s, {0, 0, 0, 1}), "replica 1 is beyond the schedule's 1");
}

TEST_CASE("sample_schedule: passes_after counts down to 0 in the order of the samples") {
  const sample_schedule s{3, 2, 2, 16};
  std::uint64_t wanted = 12;
  for (std::uint64_t w = 0; w < 3; ++w)
    for (std::uint64_t m = 0; m < 2; ++m)
      for (std::uint64_t r = 0; r < 2; ++r) {
        --wanted;
        CHECK(passes_after(s, {0, w, m, r}) == wanted);
        CHECK(passes_after(s, {7, w, m, r}) == wanted);
        CHECK(first_sample(s, {0, w, m, r}) == (11 - wanted) * 16);
      }
}

TEST_CASE(
    "own_part: each node goes through its part in order, and with blocks in turn meets the whole's "
    "samples") {
  constexpr std::uint64_t workers = 3, block = 4, clocks = 5;
  const own_part part{workers, block};
  for (std::uint64_t w = 0; w < workers; ++w) {
    std::uint64_t expected = 0;
    for (std::uint64_t c = 0; c < clocks; ++c)
      for (std::uint64_t i = 0; i < block; ++i) {
        const auto sample = (c * workers + w) * block + i;  // as first_sample() numbers them
        CHECK(part.position(sample) == expected);
        // Part w is blocks w, w + workers, ... of the whole, so this record of it is that one of the whole.
        const auto of_whole = (expected / block * workers + w) * block + expected % block;
        CHECK(of_whole == sample);
        ++expected;
      }
  }
  for (const std::uint64_t sample : {0, 3, 4, 99})
    CHECK(own_part{1, block}.position(sample) == sample);
}
