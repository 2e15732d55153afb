#include "actors/links/silence_watch.hpp"

#include <doctest/doctest.h>

namespace poseidon {
namespace {

using namespace std::chrono_literals;
using time_point = silence_watch::clock::time_point;

constexpr time_point start{1000s};

/// Bytes come every `gap` for so long. Returns  when the last ones have come.
time_point hear(silence_watch& w, time_point from, std::chrono::milliseconds gap,
                std::chrono::milliseconds for_so_long) {
  const auto end = from + for_so_long;
  while (from + gap <= end) w.heard(from += gap);
  return from;
}

TEST_CASE(
    "silence_watch: until the first byte, and for the first five seconds, the limit is fixed") {
  silence_watch w(120s, 700ms, 2000ms, start);
  w.follow(true);
  CHECK(w.limit() == 120s);
  auto now = hear(w, start, 100ms, 4900ms);
  CHECK(w.limit() == 2000ms);
  now = hear(w, now, 100ms, 1000ms);
  CHECK(w.limit() == 700ms);
}

TEST_CASE(
    "silence_watch: the limit is six times the longest gap of the last minute, in its bounds") {
  silence_watch w(120s, 700ms, 2000ms, start);
  w.follow(true);
  auto now = hear(w, start, 100ms, 20s);
  CHECK(w.limit() == 700ms);
  w.heard(now += 200ms);
  CHECK(w.limit() == 1200ms);
  w.heard(now += 600ms);
  CHECK(w.limit() == 2000ms);
  now = hear(w, now, 150ms, 45s);
  CHECK(w.limit() == 2000ms);
  now = hear(w, now, 150ms, 20s);
  CHECK(w.limit() == 900ms);
}

TEST_CASE("silence_watch: after a minute without a byte all gaps but that one are forgotten") {
  silence_watch w(120s, 700ms, 5min, start);
  w.follow(true);
  auto now = hear(w, start, 100ms, 20s);
  w.heard(now += 61s);
  w.heard(now += 10ms);
  CHECK(w.limit() == 5min);
  now = hear(w, now, 10ms, 75s);
  CHECK(w.limit() == 700ms);
}

TEST_CASE("silence_watch: a number that was given, or a run that survives no loss, has one limit") {
  silence_watch given(120s, 3000ms, 3000ms, start);
  given.follow(true);
  silence_watch cannot_be_lost(120s, 700ms, 3000ms, start);
  for (auto* w : {&given, &cannot_be_lost}) {
    const auto now = hear(*w, start, 10ms, 30s);
    CHECK(w->limit() == 3000ms);
    CHECK(!w->is_late(now + 1500ms));
    CHECK(w->is_late(now + 1501ms));
  }
}

TEST_CASE("silence_watch: where the limit follows the link, less than the least one is late") {
  silence_watch w(120s, 700ms, 2000ms, start);
  w.follow(true);
  const auto now = hear(w, start, 10ms, 30s);
  CHECK(!w.is_late(now + 525ms));
  CHECK(w.is_late(now + 526ms));
}

}  // namespace
}  // namespace poseidon
