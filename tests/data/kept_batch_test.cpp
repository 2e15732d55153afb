#include "data/kept_batch.hpp"

#include "data/sample_schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace poseidon;

namespace {

using shares = std::vector<std::pair<std::uint64_t, std::uint32_t>>;  // samples of a pass, passes

shares split(const kept_batch& kept, std::size_t nodes) {
  shares out;
  for (const auto& s : shares_of(kept, nodes)) out.emplace_back(s.samples, s.passes);
  return out;
}

std::uint64_t largest(const node_shares& of) {
  std::uint64_t out = 0;
  for (const auto& s : of) out = std::max(out, samples_of_clock(s));
  return out;
}

}  // namespace

TEST_CASE("kept_batch: more members take fewer samples each, in one pass") {
  CHECK(split({64, 64}, 1) == shares{{64, 1}});
  CHECK(split({64, 64}, 2) == shares{{32, 1}, {32, 1}});
  CHECK(split({7, 7}, 3) == shares{{3, 1}, {2, 1}, {2, 1}});
  CHECK(split({64, 16}, 2) == shares{{16, 2}, {16, 2}});  // iter_size 4 before
  CHECK(split({3, 3}, 3) == shares{{1, 1}, {1, 1}, {1, 1}});
}

TEST_CASE(
    "kept_batch: fewer members take more passes, and no pass is larger than the net's batch") {
  CHECK(split({64, 32}, 1) == shares{{32, 2}});
  CHECK(split({96, 32}, 2) == shares{{24, 2}, {24, 2}});
  CHECK(split({3, 1}, 2) == shares{{1, 2}, {1, 1}});
  CHECK(split({7, 1}, 3) == shares{{1, 3}, {1, 2}, {1, 2}});
  // 21 samples are no multiple of two passes: one member takes a pass more.
  CHECK(split({21, 7}, 2) == shares{{3, 3}, {6, 2}});
  CHECK(split({217, 31}, 6) == shares{{19, 2}, {19, 2}, {19, 2}, {18, 2}, {18, 2}, {31, 1}});
}

TEST_CASE("kept_batch: whatever the batch, the members and their replicas, the sum is exact") {
  for (std::uint64_t batch = 1; batch <= 12; ++batch)
    for (std::uint64_t batches = 1; batches <= 14; ++batches)
      for (std::uint32_t replicas = 1; replicas <= std::min<std::uint64_t>(batch, 3); ++replicas)
        for (std::size_t nodes = 1; nodes * replicas <= batch * batches; ++nodes) {
          CAPTURE(batch);
          CAPTURE(batches);
          CAPTURE(replicas);
          CAPTURE(nodes);
          const auto all = shares_of({batch * batches, batch, replicas}, nodes);
          REQUIRE(all.size() == nodes);
          REQUIRE(samples_of_all(all) == batch * batches);
          for (const auto& s : all) {
            REQUIRE(s.replicas == replicas);
            REQUIRE(s.samples >= replicas);
            REQUIRE(s.samples <= batch);
            REQUIRE(s.passes >= 1);
          }
          // Passes of the net's batch alone would be one split; one pass for each member another one.
          const auto by_batches = (batches + nodes - 1) / nodes * batch;
          const auto by_samples = (batch * batches + nodes - 1) / nodes;
          REQUIRE(largest(all) <= (batches >= nodes ? by_batches : by_samples));
        }
}

TEST_CASE("kept_batch: the largest share is near the mean, where the net's batch is large") {
  for (std::uint64_t batches = 1; batches <= 16; ++batches)
    for (std::size_t nodes = 1; nodes <= 20; ++nodes)
      for (const std::uint64_t batch : {100, 127, 128, 256}) {
        CAPTURE(batches);
        CAPTURE(nodes);
        CAPTURE(batch);
        const auto all = shares_of({batch * batches, batch}, nodes);
        const auto mean = static_cast<double>(batch * batches) / static_cast<double>(nodes);
        CHECK(static_cast<double>(largest(all)) < mean + 0.15 * static_cast<double>(batch));
      }
}

TEST_CASE(
    "kept_batch: in every view each sample of a clock belongs to one pass, in the order of the "
    "passes") {
  for (const std::size_t nodes : {1, 2, 3, 4, 5}) {
    sample_schedule s{nodes, 1, 2, 1, 1000};
    s.shares = shares_of({21, 7, 2}, nodes);
    CHECK(s.samples_per_clock() == 21);
    std::vector<std::uint64_t> seen;
    std::uint64_t after = s.passes_per_clock();
    for (std::uint64_t clock = 0; clock < 3; ++clock)
      for (std::size_t w = 0; w < nodes; ++w)
        for (std::uint64_t m = 0; m < s.shares[w].passes; ++m)
          for (std::uint32_t r = 0; r < 2; ++r) {
            const auto first = first_sample(s, {clock, w, m, r});
            for (std::uint64_t i = 0; i < samples_of(s.shares[w], r); ++i)
              seen.push_back(first + i);
            if (clock == 0) CHECK(passes_after(s, {0, w, m, r}) == --after);
          }
    REQUIRE(seen.size() == 63);
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == 1000 + i);
    CHECK_THROWS_AS((void)first_sample(s, {0, 0, s.shares[0].passes, 0}), std::invalid_argument);
  }
}

TEST_CASE("kept_batch: what cannot be shared is refused with both numbers") {
  CHECK_THROWS_WITH_AS((void)shares_of({4, 4, 2}, 3),
                       doctest::Contains("it is 4 samples, and 3 nodes with 2 replicas each need"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      (void)shares_of({100, 32}, 2),
      doctest::Contains("100 samples, and the net's batch of 32 does not divide this number"),
      std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)shares_of({1ull << 62, 1}, 3),
                       doctest::Contains("an iteration has 1073741824 at most"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      (void)shares_of({9, 3, 4}, 1),
      doctest::Contains("the net's batch of 3 has no sample for each of 4 replicas"),
      std::invalid_argument);
}
