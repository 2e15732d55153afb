#include "actors/routes/bandwidth_probe.hpp"

#include <doctest/doctest.h>

namespace poseidon {
namespace {

using namespace std::chrono_literals;
constexpr worker_id one{1}, two{2};

/// A line that takes `trip_s` and then `s_per_byte` for what is sent to both peers.
struct line_to_peers {
  double trip_s, s_per_byte;
  bandwidth_probe::time_point now{};

  double measure(bandwidth_probe& p, std::size_t& sent) {
    auto round = p.begin(now);
    for (;;) {
      sent += 2 * round.bytes;
      const auto took = trip_s + s_per_byte * 2 * static_cast<double>(round.bytes);
      now +=
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(took));
      CHECK_FALSE(p.heard(one, round.number, now));
      const auto next = p.heard(two, round.number, now);
      if (!next) return p.mbit_s();
      CHECK(next->number == round.number + 1);
      round = *next;
    }
  }
};

TEST_CASE("bandwidth_probe: the rate of all links together, without the round trip") {
  for (const double mbit_s : {10.0, 100.0, 1000.0, 10000.0})
    for (const double trip_s : {0.0001, 0.004}) {
      CAPTURE(mbit_s);
      CAPTURE(trip_s);
      bandwidth_probe p(2);
      line_to_peers n{trip_s, 8e-6 / mbit_s};
      std::size_t sent = 0;
      CHECK(n.measure(p, sent) == doctest::Approx(mbit_s).epsilon(0.01));
      // A fifth of a second from 10 Mbit/s on, and never more than the last rounds together.
      CHECK(std::chrono::duration<double>(n.now.time_since_epoch()).count() < 0.3);
      CHECK(sent < std::size_t{80} << 20);
    }
}

TEST_CASE("bandwidth_probe: with an expected rate the first round that counts is large enough") {
  for (const double faster : {0.5, 1.0, 8.0}) {
    CAPTURE(faster);
    bandwidth_probe p(2, 1000, 40);
    line_to_peers n{0.0005, 8e-6 / (faster * 1000)};
    std::size_t sent = 0;
    CHECK(n.measure(p, sent) == doctest::Approx(faster * 1000).epsilon(0.01));
    CHECK(p.next_number() == (faster > 1 ? 46 : 44));
    CHECK(n.now.time_since_epoch() < 120ms);
  }
}

TEST_CASE("bandwidth_probe: a round's frames add up to its bytes, and the last one is marked") {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{1} << 20, (std::size_t{5} << 20) / 2}) {
    const auto frames = frames_of({7, bytes}, 3);
    std::size_t all = 0;
    for (const auto& f : frames) {
      const auto& head = std::get<frames::probe>(f.header);
      CHECK(head.round == 7);
      CHECK(head.last == (&f == &frames.back()));
      CHECK(f.priority == 3);
      all += f.data.bytes.size();
    }
    CHECK(all == bytes);
  }
}

TEST_CASE("bandwidth_probe: answers to other rounds and repeated answers are ignored") {
  bandwidth_probe p(2);
  bandwidth_probe::time_point now{};
  CHECK(p.begin(now).bytes == 1);
  CHECK_FALSE(p.heard(one, 0, now));
  CHECK_FALSE(p.heard(one, 0, now));
  CHECK_FALSE(p.heard(two, 7, now));
  CHECK(p.heard(two, 0, now)->number == 1);  // the trip again
  CHECK_FALSE(p.heard(one, 0, now));
  CHECK_FALSE(p.heard(one, 1, now));
  const auto next = p.heard(two, 1, now);
  REQUIRE(next);
  CHECK(next->number == 2);
  const auto bytes = next->bytes;
  CHECK_FALSE(p.heard(one, 1, now + 1s));
  CHECK_FALSE(p.heard(two, 2, now + 1s));
  CHECK(p.mbit_s() == 0);
  const auto again = p.heard(one, 2, now + 1s);
  REQUIRE(again);
  CHECK(again->bytes == bytes);
  CHECK_FALSE(p.heard(one, 3, now + 3s));
  CHECK_FALSE(p.heard(two, 3, now + 3s));
  CHECK(p.mbit_s() == doctest::Approx(2 * 8.0 * static_cast<double>(bytes) / 1e6));
  CHECK(p.next_number() == 4);
}

TEST_CASE("bandwidth_probe: a round that is held up once does not lower the rate") {
  constexpr double s_per_byte = 8e-6 / 20;
  for (const std::uint32_t held_up : {0, 1, 2, 3}) {
    CAPTURE(held_up);
    bandwidth_probe p(1);
    bandwidth_probe::time_point now{};
    std::optional<bandwidth_probe::round> round = p.begin(now);
    while (round) {
      const auto took = 0.001 + s_per_byte * static_cast<double>(round->bytes);
      now +=
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(took));
      if (round->number == held_up) now += 200ms;
      round = p.heard(one, round->number, now);
    }
    CHECK(p.mbit_s() == doctest::Approx(20).epsilon(0.01));
  }
}

TEST_CASE(
    "bandwidth_probe: round trips that took longer than a load do not make the rate infinite") {
  bandwidth_probe p(1);
  bandwidth_probe::time_point now{};
  auto round = p.begin(now);
  for (int trips = 0; trips < 2; ++trips) round = *p.heard(one, round.number, now += 100ms);
  for (std::optional<bandwidth_probe::round> next = round; next;
       next = p.heard(one, next->number, now += 50ms))
    ;
  CHECK(p.mbit_s() == doctest::Approx(8 * 16.777216 / 0.005));
}

}  // namespace
}  // namespace poseidon
