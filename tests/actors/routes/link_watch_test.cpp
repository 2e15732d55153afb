#include "actors/routes/link_watch.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace poseidon;
using namespace std::chrono_literals;

namespace {

const link_watch::time_point midday{12h};
constexpr worker_id one_peer{1};

/// Answers rounds at so many bytes a microsecond until the rate is known.
link_watch::advice finish_probe(link_watch& w, bandwidth_probe::round r,
                                link_watch::time_point& now, unsigned bytes_us = 1) {
  for (;;) {
    now += 100us + std::chrono::microseconds(r.bytes / bytes_us);
    const auto a = w.answered(one_peer, r.number, now);
    if (!a.probe) return a;
    r = *a.probe;
  }
}

}  // namespace

TEST_CASE("link_watch: an idle line is timed only where a rise would matter") {
  link_watch w(1);
  const auto quiet = w.heard(one_peer, {}, false, midday);
  CHECK(!quiet.tell);
  CHECK(!quiet.probe);
  CHECK(!w.probes());
  CHECK(w.heard(one_peer, {}, true, midday).probe);
  CHECK(w.probes());
  CHECK(!w.heard(one_peer, {}, true, midday + 10s).probe);  // that one is under way
}

TEST_CASE("link_watch: the timed rate is told, within this node's limits, and holds for a while") {
  for (const double limit : {0.0, 3.0}) {
    CAPTURE(limit);
    link_watch w(1, limit);
    auto now = midday;
    const auto first = w.heard(one_peer, {}, true, now);
    REQUIRE(first.probe);
    const auto a = finish_probe(w, *first.probe, now);
    REQUIRE(a.tell);
    CHECK(a.tell->probed);
    if (limit > 0)
      CHECK(a.tell->mbit_s == limit);
    else
      CHECK(a.tell->mbit_s == doctest::Approx(8).epsilon(0.2));
    // The first rate has nothing to be compared with, so it is soon asked for once more.
    CHECK(!w.heard(one_peer, {}, true, now + 100ms).probe);
    CHECK(w.heard(one_peer, {}, true, now + 160ms).probe);
  }
}

TEST_CASE(
    "link_watch: a line that is never twice the same is timed no more often than another one") {
  link_watch w(1);
  auto now = midday;
  std::vector<std::chrono::nanoseconds> waits;
  for (unsigned n = 0; n < 20; ++n) {
    const auto ended = now;
    auto a = w.heard(one_peer, {}, true, now);
    while (!a.probe) a = w.heard(one_peer, {}, true, now += 10ms);
    waits.push_back(now - ended);
    REQUIRE(finish_probe(w, *a.probe, now, n % 2 == 0 ? 1 : 2).tell);
  }
  CHECK(waits[1] < 200ms);
  CHECK(waits[3] < 200ms);
  CHECK(waits.back() >= 1200ms);
}

TEST_CASE("link_watch: an answer that was not asked for counts for nothing") {
  link_watch w(1);
  const auto a = w.answered(one_peer, 7, midday);
  CHECK(!a.tell);
  CHECK(!a.probe);
}
