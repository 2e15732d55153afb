#include "actors/routes/replanner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace poseidon;

namespace {

using namespace std::chrono_literals;

route_rates rates_at(double mbit_s) {
  route_rates r;
  r.workers = 2;
  r.link_mbit_s = mbit_s;
  r.flop_s = 50e9;
  r.product_s = [](const factor_shape& s) {
    return 2.0 * static_cast<double>(s.rows * s.outputs * s.inputs) / 50e9;
  };
  r.update_s_value = 1e-9;
  r.add_s_value = 5e-10;
  return r;
}

std::vector<route_load> loads_of_a_net() {
  route_load conv;
  conv.name = "conv1";
  conv.values = 1e5;
  conv.backward_flop = 2e9;
  route_load fc;
  fc.name = "fc6";
  fc.factors = {128, 4096, 4096};
  fc.values = 4096.0 * 4097;
  fc.backward_flop = 4.0 * 128 * 4096 * 4096;
  return {conv, fc};
}

constexpr double fast = 20000, slow = 200;

struct watched {
  replanner it;
  replanner::time_point now{};
  std::uint64_t left = 1000000;  // clocks

  explicit watched(double mbit_s)
      : it(loads_of_a_net(), rates_at(mbit_s), mbit_s, factors_at(mbit_s)) {}
  static std::vector<bool> factors_at(double mbit_s) {
    std::vector<bool> out(2);
    for (const auto& d : decide_routes(loads_of_a_net(), rates_at(mbit_s)))
      out[d.layer] = d.chosen == route::factor_broadcast;
    return out;
  }
  std::optional<replanner::proposal> hear(double mbit_s, std::uint32_t from = 0, int times = 4,
                                          bool probed = false) {
    std::optional<replanner::proposal> answer;
    for (int i = 0; i < times; ++i) {
      now += 250ms;
      if (auto p = it.hear(worker_id{from}, mbit_s, probed, left, now)) answer = std::move(p);
    }
    return answer;
  }
};

}  // namespace

TEST_CASE(
    "replanner: a line that becomes slow changes the route of the big layer within a second") {
  REQUIRE(watched::factors_at(fast) == std::vector<bool>{false, false});
  REQUIRE(watched::factors_at(slow) == std::vector<bool>{false, true});
  watched t(fast);
  CHECK_FALSE(t.hear(fast, 0, 8));
  const auto changed = t.now;
  const auto p = t.hear(slow, 0, 4);
  REQUIRE(p);
  CHECK(t.now - changed <= 1s);
  CHECK(p->factors == std::vector<bool>{false, true});
  CHECK(p->why.find("a node's links carry 200 Mbit/s together now, and carried 20000 when "
                    "routes were chosen: fc6 to factor_broadcast is to save ") == 0);
  t.it.changed(10ms, t.now);
  t.now += 2s;
  const auto back = t.hear(fast);
  REQUIRE(back);
  CHECK(back->factors == std::vector<bool>{false, false});
  CHECK(back->why.find("fc6 to parameter_server") != std::string::npos);
}

TEST_CASE("replanner: the slowest node counts, and a single outlier does not") {
  watched t(fast);
  (void)t.hear(fast, 0);
  CHECK_FALSE(t.hear(slow, 1, 1));
  CHECK_FALSE(t.hear(fast, 1, 3));
  CHECK(t.hear(slow, 1, 4));
}

TEST_CASE(
    "replanner: a first reading below the probe's rate does not mean that the line became slow") {
  watched t(fast);
  for (const double reading : {0.55, 0.7, 0.6, 0.75}) CHECK_FALSE(t.hear(reading * fast, 1));
  const auto p = t.hear(0.6 * slow, 1);  // about a hundredth of its usual reading
  REQUIRE(p);
  CHECK(p->factors == std::vector<bool>{false, true});
  t.it.changed(10ms, t.now);
  t.now += 2s;
  // The traffic of other routes reads otherwise.
  CHECK_FALSE(t.hear(0.8 * slow, 1, 8));
  CHECK(t.hear(fast, 1));
}

TEST_CASE("replanner: a probe's rate counts as it is, whatever has been read off traffic") {
  watched t(slow);
  CHECK_FALSE(t.hear(0.6 * slow, 0));  // means `slow`
  const auto p = t.hear(0.6 * fast, 0, 4, true);
  REQUIRE(p);
  CHECK(p->factors == std::vector<bool>{false, false});
  CHECK(p->why.find("carry 12000 Mbit/s together now, and carried 200") != std::string::npos);
}

TEST_CASE("replanner: a probe and a reading off traffic do not confirm each other") {
  watched t(slow);
  CHECK_FALSE(t.hear(fast, 0, 1, true));
  CHECK_FALSE(t.hear(fast, 0, 1, false));
  CHECK_FALSE(t.hear(fast, 0, 2, true));
  CHECK(t.hear(fast, 0, 1, true));  // four probes, whatever was read between
}

TEST_CASE("replanner: near the run's end a change would cost more than it saves") {
  watched t(fast);
  REQUIRE(t.hear(slow));
  t.it.changed(30s, t.now);  // on this machine a change is as slow as some ten iterations
  t.now += 1h;
  t.left = 10;
  CHECK_FALSE(t.hear(fast, 0, 40));
  t.left = 1000000;
  CHECK(t.hear(fast));
}

TEST_CASE("replanner: a first reading that is far from the probe's rate is believed") {
  watched t(fast);
  CHECK(t.hear(slow, 1));
}

TEST_CASE("replanner: near a tie no route changes, whether the rate rises or falls") {
  // Finds the rate at which decide_routes decides otherwise.
  double low = slow, high = fast;
  while (high / low > 1.001) {
    const auto mid = std::sqrt(low * high);
    (watched::factors_at(mid)[1] ? low : high) = mid;
  }
  for (const double begin : {0.8 * low, 1.02 * high}) {
    CAPTURE(begin);
    watched t(begin);
    const bool on_factors = watched::factors_at(begin)[1];
    for (int i = 0; i < 10; ++i) {
      CHECK_FALSE(t.hear(1.03 * high));
      CHECK_FALSE(t.hear(on_factors ? 0.75 * low : 0.99 * low));
    }
  }
}

TEST_CASE(
    "replanner: changes are the rarer, the longer they pause training, and come one at a time") {
  watched t(fast);
  REQUIRE(t.hear(slow));
  CHECK_FALSE(t.hear(fast, 0, 40));  // not before this change is complete
  t.it.changed(500ms, t.now);
  const auto since = t.now;
  while (!t.hear(fast, 0, 1)) REQUIRE(t.now - since < 11s);
  CHECK(t.now - since >= 10s);
}

namespace {

/// A run of an hour over a line of a random rate, in which a change of routes pauses training for 200 ms.
struct hour_of_readings {
  static constexpr double tick_s = 0.25, hour_s = 3600, pause_s = 0.2;
  std::mt19937 random;
  int changes = 0;
  // Iterations with the routes it had, and with the better ones at any time.
  double trained = 0, best = 0;

  explicit hour_of_readings(unsigned seed) : random(seed) {}

  double uniform(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  }
  /// Of a line that carries `mbit_s`: some 20 % off, and one in ten far too low, as on a busy machine.
  double reading(double mbit_s) {
    const auto noise = std::exp(std::normal_distribution<double>(0, 0.2)(random));
    return mbit_s * noise * (uniform(0, 1) < 0.1 ? uniform(0.02, 0.5) : 1);
  }
  /// `rate_at(s)`: what the line carries.
  template <class Rate>
  void run(Rate rate_at) {
    watched t(rate_at(0));
    auto has = watched::factors_at(rate_at(0));
    const auto loads = loads_of_a_net();
    for (double s = 0; s < hour_s; s += tick_s) {
      const auto rate = rate_at(s);
      const auto rates = rates_at(rate);
      const auto each = forecast(loads, rates, has).whole_ms;
      trained += 1e3 * tick_s / each;
      best +=
          1e3 * tick_s / std::min(each, forecast(loads, rates, watched::factors_at(rate)).whole_ms);
      t.left = 1000000;
      if (const auto p = t.hear(reading(rate), 0, 1)) {
        ++changes;
        has = p->factors;
        trained -= 1e3 * pause_s / each;
        t.it.changed(200ms, t.now);
      }
    }
  }
};

}  // namespace

TEST_CASE(
    "replanner: on a line that stays as it is, an hour of noise changes routes at most once") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    hour_of_readings h(seed);
    const auto rate = std::exp(h.uniform(std::log(50.0), std::log(50000.0)));
    CAPTURE(rate);
    h.run([&](double) { return rate; });
    CHECK(h.changes <= 1);
    CHECK(h.trained >= 0.95 * h.best);
  }
}

TEST_CASE("replanner: on a line of any rates changes are few, and little is lost by late ones") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    hour_of_readings h(seed);
    const auto longest_s = h.uniform(10, 600);
    CAPTURE(longest_s);
    double rate = 0, until = -1;
    h.run([&](double s) {
      if (s >= until) {
        rate = std::exp(h.uniform(std::log(50.0), std::log(50000.0)));
        until = s + h.uniform(longest_s / 4, longest_s);
      }
      return rate;
    });
    CHECK(h.changes <= 6 + hour_of_readings::hour_s / 64);
    CHECK(h.trained >= (longest_s > 100 ? 0.9 : 0.75) * h.best);
  }
}
