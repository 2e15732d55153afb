#include "actors/unsent_limit.hpp"

#include <doctest/doctest.h>

using poseidon::unsent_limit;

TEST_CASE("unsent_limit: all there is room for until the line is known, and on a fast one") {
  unsent_limit it;
  CHECK(it.heard(0).unsent == unsent_limit::most.unsent);
  CHECK(it.heard(0).piece == unsent_limit::most.piece);
  CHECK(it.heard(125e6).unsent == unsent_limit::most.unsent);
  CHECK(it.heard(125e6).piece == unsent_limit::most.piece);
}

TEST_CASE("unsent_limit: on a slow line some milliseconds of it, but never nothing") {
  unsent_limit it;
  const auto slow = it.heard(12.5e6);
  CHECK(slow.unsent == 98304);  // 7.9 ms
  CHECK(slow.piece == 49152);
  unsent_limit crawling;
  CHECK(crawling.heard(1e3).unsent == unsent_limit::least.unsent);
  CHECK(crawling.heard(1e3).piece == unsent_limit::least.piece);
}

TEST_CASE("unsent_limit: one bad measurement changes little, some seconds of them do") {
  unsent_limit it;
  const auto before = it.heard(12.5e6);
  CHECK(it.heard(1e5).unsent > 0.8 * before.unsent);
  auto after = before;
  for (int i = 0; i < 8 * 10; ++i) after = it.heard(1e5);
  CHECK(after.unsent == unsent_limit::least.unsent);
  CHECK(it.heard(12.5e6).unsent == before.unsent);  // and one good one makes it fast again
}
