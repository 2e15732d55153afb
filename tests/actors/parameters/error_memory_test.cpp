#include "actors/parameters/error_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace poseidon;

namespace {

/// A clock: what is sent leaves the memory with one more in each value.
void train(error_memory& m, std::uint64_t clock) {
  for (auto& x : m.make_from(clock)) x += 1;
  m.made(clock + 1);
}

std::vector<float> at(const error_memory& m, std::uint64_t version) {
  const auto values = m.at(version);
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("error_memory: a view begins with what the one before has left, a newcomer with zeros") {
  error_memory m;
  m.begin(2, 5, 0);
  CHECK(at(m, 5) == std::vector<float>{0, 0});
  train(m, 5);
  train(m, 6);
  m.begin(2, 7, 0);
  CHECK(at(m, 7) == std::vector<float>{2, 2});
  // The number of versions that are kept may be another one in the next view.
  m.begin(2, 7, 2);
  train(m, 7);
  m.begin(2, 8, 0);
  CHECK(at(m, 8) == std::vector<float>{3, 3});
}

TEST_CASE("error_memory: as many former versions as were asked for can be gone back to") {
  for (const std::uint64_t back : {0u, 1u, 2u}) {
    error_memory m;
    m.begin(1, 0, 2);
    for (std::uint64_t clock = 0; clock < 9; ++clock) train(m, clock);
    m.begin(1, 9 - back, 2);
    CHECK(at(m, 9 - back) == std::vector<float>{9.0f - static_cast<float>(back)});
  }
}

TEST_CASE("error_memory: a clock that is given up halfway leaves the version that it began with") {
  error_memory m;
  m.begin(1, 0, 1);
  train(m, 0);
  m.make_from(1)[0] = 100;
  CHECK(m.at(2).empty());
  m.begin(1, 1, 1);
  CHECK(at(m, 1) == std::vector<float>{1});
}

TEST_CASE(
    "error_memory: what is being made takes the place of no version that can be gone back to") {
  // A node may begin a clock while another one lacks a layer of the version before.
  for (const std::uint64_t former : {1u, 2u}) {
    error_memory m;
    m.begin(1, 0, former);
    for (std::uint64_t clock = 0; clock < 7; ++clock) train(m, clock);
    m.make_from(7)[0] = 100;
    m.begin(1, 7 - former, former);
    CHECK(at(m, 7 - former) == std::vector<float>{7.0f - static_cast<float>(former)});
  }
}

TEST_CASE(
    "error_memory: a version that is gone begins with zeros, never with half of another one") {
  error_memory m;
  m.begin(1, 0, 0);
  train(m, 0);
  m.make_from(1)[0] = 100;
  m.begin(1, 1, 0);
  CHECK(at(m, 1) == std::vector<float>{0});
}
