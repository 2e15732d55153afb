#include "actors/telemetry/worker_view.hpp"

#include <doctest/doctest.h>

using namespace poseidon;

TEST_CASE("lag_of: workers are compared at one moment, and one that is silent falls behind") {
  std::map<std::uint32_t, worker_view> w;
  constexpr std::int64_t s = 1'000'000'000;
  for (std::uint64_t c = 0; c < 20; ++c) {
    w[0].pace.clocks.emplace_back(static_cast<std::int64_t>(c) * s / 10, c);
    if (c < 16) w[1].pace.clocks.emplace_back(static_cast<std::int64_t>(c) * s / 10, c);
  }
  w[0].contact.known_ns = 2 * s;
  // it has told of clock 15, when the other one was there as well
  w[1].contact.known_ns = 3 * s / 2 + s / 20;
  CHECK(lag_of(w, 1, 2 * s) == 0);
  CHECK(lag_of(w, 0, 2 * s) == 0);
  w[1].pace.clocks.pop_back();
  CHECK(lag_of(w, 1, 2 * s) == 1);
  CHECK(lag_of(w, 1, 9 * s) == 5);
}

TEST_CASE("compare_clocks: half the way is what can be wrong") {
  const auto e = compare_clocks(1000, 51200, 51300, 1500);
  CHECK(e.offset_ns == 50000);
  CHECK(e.uncertain_ns == 200);
}

TEST_CASE("worker_contact: the least delayed exchange counts, and an old estimate loses weight") {
  worker_contact contact;
  node_report r;
  r.asked_ns = 1000, r.heard_ns = 51200, r.sent_ns = 51300;
  contact.compare(r, 1500);
  CHECK(contact.offset_ns == 50000);
  CHECK(contact.uncertain_ns == 200);
  r.heard_ns = 61200, r.sent_ns = 61300;
  contact.compare(r, 4000);  // 2900 ns on the way
  CHECK(contact.offset_ns == 50000);
  CHECK(contact.uncertain_ns == 1203);
  r.asked_ns = 5000;
  contact.compare(r, 4000);  // asked in the future: not about this node's clock
  CHECK(contact.uncertain_ns == 1203);
}

TEST_CASE("worker_pace: replicas that are a clock apart add to the clock that each computes") {
  worker_pace pace;
  const auto kernel = [&](std::int64_t begin, std::int64_t end, std::uint64_t clock) {
    pace.add({0, 0, 0, -1, begin, end, clock, 0}, "conv1", span_phase::forward, end);
  };
  kernel(0, 10, 4);
  kernel(10, 30, 5);
  kernel(12, 17, 4);
  CHECK(pace.clock == 5);
  CHECK(pace.busy.at(0).second == 15);
  CHECK(pace.busy.at(1).second == 20);
  CHECK(pace.computed_ns == 30);
  CHECK(pace.updates.empty());
}
