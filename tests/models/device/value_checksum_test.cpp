#include "models/device/value_checksum.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace poseidon;

namespace {

std::vector<float> some(std::size_t count) {
  std::minstd_rand dice(7);
  std::vector<float> out(count);
  for (auto& v : out) v = static_cast<float>(dice()) / 1e9f - 1;
  return out;
}

std::uint32_t sum_of(std::span<const float> values) {
  value_checksum sum;
  sum.add(values);
  return sum.value();
}

/// The same in the plainest words, without vectors: value i is added to sum i % 32, and all sums to one.
std::uint32_t by_definition(std::span<const float> values) {
  const auto follow = [](std::uint32_t sum, std::uint32_t bits) {
    const auto product = (sum + bits) * 0x9e3779b1u;
    return product ^ product >> 15;
  };
  std::uint32_t sums[32] = {};
  for (std::size_t i = 0; i < values.size(); ++i)
    sums[i % 32] = follow(sums[i % 32], std::bit_cast<std::uint32_t>(values[i]));
  auto all = static_cast<std::uint32_t>(values.size());
  for (const auto sum : sums) all = follow(all, sum);
  return all;
}

}  // namespace

TEST_CASE("value_checksum: the same on every processor, and however many values come at once") {
  for (const std::size_t count : {0, 1, 31, 32, 33, 1000}) {
    CAPTURE(count);
    const auto values = some(count);
    CHECK(sum_of(values) == by_definition(values));
    for (const std::size_t piece : {1, 5, 32, 50, 512}) {
      CAPTURE(piece);
      value_checksum sum;
      for (std::size_t at = 0; at < count; at += piece)
        sum.add(std::span(values).subspan(at, std::min(piece, count - at)));
      CHECK(sum.value() == by_definition(values));
    }
  }
}

TEST_CASE("value_checksum: any bit of any value, the order and the number of values change it") {
  const auto values = some(200);
  std::set<std::uint32_t> seen{sum_of(values)};
  auto changed = values;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (int bit = 0; bit < 32; ++bit) {
      changed[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[i]) ^ 1u << bit);
      seen.insert(sum_of(changed));
      changed[i] = values[i];
    }
  CHECK(seen.size() == 200 * 32 + 1);
  std::swap(changed[3], changed[35]);
  CHECK(sum_of(changed) != sum_of(values));
  CHECK(sum_of(std::vector<float>(40)) != sum_of(std::vector<float>(41)));
}

/// As where two processors round zero differently.
TEST_CASE("value_checksum: signs of two values that are in the same sum change it") {
  auto values = some(200);
  const auto before = sum_of(values);
  for (const std::size_t i : {7, 7 + 32, 7 + 64}) {
    CAPTURE(i);
    auto changed = values;
    changed[i] = -changed[i];
    changed[7 + 96] = -changed[7 + 96];
    CHECK(sum_of(changed) != before);
  }
}
