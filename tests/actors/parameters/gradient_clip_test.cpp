#include "actors/parameters/gradient_clip.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace poseidon;

namespace {

/// The factor of a clock whose gradient is `values`, on one shard with one chunk.
float factor(float limit, const std::vector<float>& values, std::uint32_t replicas = 1) {
  gradient_clip clip(limit, replicas, 1, 1);
  REQUIRE(clip.add_chunk(7, values));
  const auto f = clip.take_factor(7);
  REQUIRE(f);
  return *f;
}

}  // namespace

TEST_CASE("gradient_clip: a gradient longer than the limit is cut to it, others stay as they are") {
  CHECK(factor(5, {3, 4}) == 1);  // the limit itself is allowed
  CHECK(factor(2.5, {3, 4}) == 0.5f);
  CHECK(factor(100, {3, 4}) == 1);
  CHECK(factor(0, {3, 4}) == 0);  // as in Caffe, where only a negative limit is none
  CHECK(factor(0, {0, 0}) == 1);
}

TEST_CASE("gradient_clip: the norm does not grow with the replicas that split a batch") {
  // Two halves of a batch give twice the gradient of the whole.
  CHECK(factor(2.5, {6, 8}, 2) == factor(2.5, {3, 4}));
}

TEST_CASE("gradient_clip: NaN and infinity get through, so that the divergence is seen") {
  CHECK(factor(1, {3, std::nanf("")}) == 1);
  CHECK(factor(1, {3, std::numeric_limits<float>::infinity()}) == 0);  // 0 * infinity is NaN
}

TEST_CASE("gradient_clip: waits for the own chunks and the other shards, clock by clock") {
  gradient_clip clip(1, 1, 2, 2);
  square_sum others;
  others.add(std::vector<float>{4});
  CHECK_FALSE(clip.add_chunk(3, std::vector<float>{0}));
  clip.add_shard(3, others);
  CHECK_FALSE(clip.take_factor(3));
  const auto own = clip.add_chunk(3, std::vector<float>{3});
  REQUIRE(own);
  CHECK(own->value() == 9);
  CHECK_FALSE(clip.take_factor(4));
  CHECK(clip.take_factor(3) == 0.2f);
  CHECK_FALSE(clip.take_factor(3));
}

TEST_CASE("gradient_clip: a shard without learned chunks needs only the others") {
  gradient_clip clip(1, 1, 0, 1);
  square_sum others;
  others.add(std::vector<float>{2});
  clip.add_shard(0, others);
  CHECK(clip.take_factor(0) == 0.5f);
}
