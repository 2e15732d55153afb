#include "actors/routes/send_rate_meter.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace poseidon;

namespace {

using namespace std::chrono_literals;

/// Links whose kernels count; the meter hears of them every 125 ms, as from network_link.
struct metered_links {
  send_rate_meter meter;
  std::vector<tcp_flow> flows;
  send_rate_meter::time_point now{};

  explicit metered_links(std::size_t peers) : meter(peers), flows(peers) { (void)tick({}); }

  /// What a link did in 125 ms; mbit_s is its rate while it was busy.
  struct sent {
    double mbit_s = 0;
    std::uint64_t busy_us = 0, hindered_us = 0, waited_us = 0;
  };
  std::optional<send_rate_meter::reading> tick(std::vector<sent> of) {
    std::optional<send_rate_meter::reading> answer;
    now += 125ms;
    of.resize(flows.size());
    for (std::size_t l = 0; l < flows.size(); ++l) {
      flows[l].acked_bytes +=
          static_cast<std::uint64_t>(of[l].mbit_s * static_cast<double>(of[l].busy_us) / 8);
      flows[l].busy_us += of[l].busy_us;
      flows[l].hindered_us += of[l].hindered_us;
      flows[l].waited_us += of[l].waited_us;
      const auto heard = meter.heard(as_id<worker_id>(l + 1), flows[l], now);
      if (heard) answer = heard;
    }
    return answer;
  }
};

}  // namespace

TEST_CASE("send_rate_meter: the rate counts only the time in which data was waiting to be sent") {
  for (const std::uint64_t busy : {125000u, 60000u, 15000u}) {
    CAPTURE(busy);
    metered_links n(1);
    CHECK_FALSE(n.tick({{100, busy}}));
    const auto rate = n.tick({{100, busy}});
    REQUIRE(rate);
    CHECK(rate->mbit_s == doctest::Approx(100).epsilon(0.01));
    CHECK(rate->busy == doctest::Approx(static_cast<double>(busy) / 125000));
  }
}

TEST_CASE("send_rate_meter: links that share a line add up, a slow one counts for each") {
  metered_links shared(2);
  (void)shared.tick({{40, 125000}, {60, 125000}});
  CHECK(shared.tick({{40, 125000}, {60, 125000}})->mbit_s == doctest::Approx(100).epsilon(0.01));

  metered_links slow(2);  // the same bytes to both, over lines of 10 and of 100
  (void)slow.tick({{10, 100000}, {100, 10000}});
  CHECK(slow.tick({{10, 100000}, {100, 10000}})->mbit_s == doctest::Approx(20).epsilon(0.01));
}

TEST_CASE("send_rate_meter: a machine that has no core for the sender gives no reading") {
  metered_links n(2);
  const metered_links::sent calm{100, 100000, 0, 5000}, late{100, 100000, 0, 30000};
  for (int i = 0; i < 4; ++i) CHECK_FALSE(n.tick({calm, late}));
  (void)n.tick({calm, calm});
  CHECK(n.tick({calm, calm}));
}

TEST_CASE(
    "send_rate_meter: a receiver that does not read and a window with little data give no "
    "reading") {
  metered_links n(1);
  for (int i = 0; i < 4; ++i) CHECK_FALSE(n.tick({{100, 125000, 50000}}));
  for (int i = 0; i < 20; ++i) CHECK_FALSE(n.tick({{100, 100}}));
}

TEST_CASE("send_rate_meter: forget() begins a new window") {
  metered_links n(1);
  (void)n.tick({{100, 125000}});
  n.meter.forget();
  (void)n.tick({{100, 125000}});
  (void)n.tick({{10, 125000}});
  CHECK(n.tick({{10, 125000}})->mbit_s == doctest::Approx(10).epsilon(0.01));
}
