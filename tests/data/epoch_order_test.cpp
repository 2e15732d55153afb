#include "data/epoch_order.hpp"

#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>

using namespace poseidon;
using namespace poseidon::test;

TEST_CASE("epoch_order: each epoch has everything once, in an order of its own") {
  for (const std::uint64_t n : {1, 2, 17, 1000}) {
    const epoch_order order(n, true, {7, 1, 0});
    std::vector<std::vector<std::uint64_t>> epochs(3);
    for (std::uint64_t i = 0; i < 3 * n; ++i) epochs[i / n].push_back(order.at(i));
    std::vector<std::uint64_t> all(n);
    std::iota(all.begin(), all.end(), 0u);
    for (auto& epoch : epochs) {
      auto sorted = epoch;
      std::sort(sorted.begin(), sorted.end());
      CHECK(sorted == all);
    }
    if (n < 17) continue;
    CHECK(epochs[0] != epochs[1]);
    CHECK(epochs[1] != epochs[2]);
    CHECK(epochs[0] != all);
  }
}

TEST_CASE("epoch_order: depends on seed, layer, part and epoch, not on who asked before") {
  const epoch_order order(100, true, {7, 1, 0}), late(100, true, {7, 1, 0});
  std::vector<std::uint64_t> forward, backward;
  for (std::uint64_t i = 0; i < 500; ++i) forward.push_back(order.at(i));
  for (std::uint64_t i = 500; i-- > 0;) backward.push_back(late.at(i));
  std::reverse(backward.begin(), backward.end());
  CHECK(forward == backward);
  for (const auto& other : {shuffle_key{8, 1, 0}, {7, 2, 0}, {7, 1, 1}})
    CHECK(*shuffled(100, other, 0) != *shuffled(100, {7, 1, 0}, 0));
}

TEST_CASE("epoch_order: every order of three things comes up as often as the others") {
  std::array<int, 27> seen{};
  constexpr int epochs = 6000;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto order = shuffled(3, {1, 0, 0}, epoch);
    ++seen[(*order)[0] * 9 + (*order)[1] * 3 + (*order)[2]];
  }
  int orders = 0;
  for (const int n : seen) {
    if (n == 0) continue;
    ++orders;
    CHECK(std::abs(n - epochs / 6) < 150);  // five standard deviations of 29
  }
  CHECK(orders == 6);
}

TEST_CASE("epoch_order: without a shuffle it is the order itself, of any length") {
  const epoch_order order(std::uint64_t{1} << 40, false, {});
  CHECK(order.at(5) == 5);
  CHECK(order.at((std::uint64_t{1} << 40) + 6) == 6);
  CHECK(complaint([] { epoch_order(std::uint64_t{1} << 40, true, {}); }).find("too many") !=
        std::string::npos);
}
