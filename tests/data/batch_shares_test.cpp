#include "data/batch_shares.hpp"

#include "data/sample_schedule.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

using namespace poseidon;

namespace {

std::vector<std::uint64_t> samples(std::uint64_t total, std::vector<double> weights,
                                   std::vector<std::uint32_t> replicas = {}) {
  if (replicas.empty()) replicas.assign(weights.size(), 1);
  std::vector<std::uint64_t> out;
  for (const auto& s : shares_by_weight(total, weights, replicas)) out.push_back(s.samples);
  return out;
}

std::string refusal(const std::string& text, std::size_t nodes) {
  try {
    (void)parse_shares(text, nodes);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

using list = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("batch_shares: shares follow the weights, whole samples by largest remainders") {
  CHECK(samples(16, {3, 1}) == list{12, 4});
  CHECK(samples(128, {812.5, 812.5}) == list{64, 64});
  CHECK(samples(10, {1, 1, 1}) == list{4, 3, 3});    // equal remainders: the first
  CHECK(samples(10, {2, 1, 2.9}) == list{3, 2, 5});  // 3.39, 1.69, 4.92
  CHECK(samples(128, {100, 47}) == list{87, 41});    // 87.07, 40.93
  CHECK(samples(7, {1e300, 1e300}) == list{4, 3});   // their sum overflows without harm
  CHECK(samples(2, {1, 1}) == list{1, 1});
}

TEST_CASE("batch_shares: every replica has a sample, whatever its node's weight") {
  CHECK(samples(16, {1000, 1}) == list{15, 1});
  CHECK(samples(16, {1000, 1}, {2, 4}) == list{12, 4});
  CHECK(samples(12, {1, 1000, 1000}, {3, 1, 1}) == list{3, 5, 4});
  CHECK(samples(6, {5, 1, 1}, {2, 2, 2}) == list{2, 2, 2});
  CHECK_THROWS_WITH_AS(samples(5, {5, 1, 1}, {2, 2, 2}),
                       doctest::Contains("together are 5 samples, and their 6 replicas need at "
                                         "least one each. Choose a larger batch_size"),
                       std::invalid_argument);
  CHECK_THROWS_AS(samples(5, {5, 0}), std::invalid_argument);
  CHECK_THROWS_AS(samples(5, {5, std::nan("")}), std::invalid_argument);
}

TEST_CASE("batch_shares: no sample is lost or made, and a share is less than one off") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const auto nodes = 1 + random() % 9;
    const auto total = nodes * (1 + random() % 60);
    std::vector<double> weights;
    for (std::size_t n = 0; n < nodes; ++n) weights.push_back(1 + random() % 10000);
    const auto once = samples(total, weights);
    CHECK(samples(total, weights) == once);
    double sum = 0;
    std::uint64_t all = 0;
    bool least = false;
    for (const auto w : weights) sum += w;
    for (const auto s : once) all += s, least = least || s == 1;
    CHECK(all == total);
    for (std::size_t n = 0; n < nodes && !least; ++n)
      CHECK(std::abs(static_cast<double>(once[n]) - static_cast<double>(total) * weights[n] / sum) <
            1);
  }
}

TEST_CASE("batch_shares: replicas split a node's share, the first ones take what is over") {
  const node_share share{11, 4};
  list parts, before;
  for (std::uint32_t r = 0; r < 4; ++r) {
    parts.push_back(samples_of(share, r));
    before.push_back(samples_before(share, r));
  }
  CHECK(parts == list{3, 3, 3, 2});
  CHECK(before == list{0, 3, 6, 9});
  CHECK(!uneven({}));
  CHECK(!uneven({{8, 2}, {8, 2}}));
  CHECK(uneven({{8, 2}, {8, 1}}));
  CHECK(uneven({{9, 1}, {7, 1}}));
  CHECK(uneven({{9, 2}, {9, 2}}));
  CHECK(describe_share(41, 128) == "41 of 128 (32 %)");
}

TEST_CASE("batch_shares: what the option's words mean, and what is wrong with others") {
  CHECK(parse_shares("equal", 1).what == share_option::kind::equal);
  CHECK(parse_shares("auto", 2).what == share_option::kind::automatic);
  CHECK(parse_shares("3,1,0.5", 3).weights == std::vector<double>{3, 1, 0.5});
  CHECK(refusal("3,1", 3) ==
        "--batch-share 3,1: there are 2 weights for --nodes 3. Give one for each node, the first "
        "node's first.");
  CHECK(refusal("3,0", 2).find("worker 1 has the weight 0, it has to be above 0") !=
        std::string::npos);
  for (const auto* word : {"fast", "3,x", "3,", ",1", "", "1e999,1", "nan,1", "3;1"})
    CHECK_MESSAGE(
        refusal(word, 2).find("is no number. Give equal, auto, or a weight") != std::string::npos,
        word);
  CHECK(refusal("-1,2", 2).find("above 0") != std::string::npos);
  CHECK(refusal("auto", 1).find("Give --nodes N with N >= 2") != std::string::npos);
}

TEST_CASE(
    "sample_schedule: with shares a clock has the same samples in the same order, cut elsewhere") {
  constexpr std::uint32_t micro = 3;
  const std::uint64_t batch = 8, start = 1000;
  const node_shares shares{{13, 2, micro}, {4, 1, micro}, {7, 3, micro}};
  const sample_schedule equal{3, micro, 1, batch, start}, s{3, micro, 9, 99, start, shares};
  CHECK(s.samples_per_clock() == equal.samples_per_clock());
  CHECK(s.passes_per_clock() == micro * 6);
  std::uint64_t next = start;
  for (std::uint64_t c = 0; c < 4; ++c) {
    CHECK(first_sample(equal, {c, 0, 0, 0}) == next);
    auto after = s.passes_per_clock();
    for (std::uint64_t w = 0; w < shares.size(); ++w)
      for (std::uint64_t m = 0; m < micro; ++m)
        for (std::uint32_t r = 0; r < shares[w].replicas; ++r) {
          CHECK(first_sample(s, {c, w, m, r}) == next);
          CHECK(passes_after(s, {c, w, m, r}) == --after);
          next += samples_of(shares[w], r);
        }
  }
  CHECK_THROWS_AS((void)first_sample(s, {0, 1, 0, 1}), std::invalid_argument);
  // Equal ones are today's.
  const sample_schedule as_equal{2, micro, 2, 4, start, {{8, 2, micro}, {8, 2, micro}}};
  for (std::uint64_t w = 0; w < 2; ++w)
    for (std::uint64_t m = 0; m < micro; ++m)
      for (std::uint64_t r = 0; r < 2; ++r) {
        const train_pass p{5, w, m, r};
        CHECK(first_sample(as_equal, p) == first_sample({2, micro, 2, 4, start}, p));
        CHECK(passes_after(as_equal, p) == passes_after({2, micro, 2, 4, start}, p));
      }
}
