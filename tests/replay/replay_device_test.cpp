// The replay device's deadlines, on a clock of the test's own. Sums and updates are really computed.
#include "replay/replay_device.hpp"

#include "models/plan/byte_scale.hpp"
#include "tests/models/nets.hpp"
#include "tests/plain_arithmetic.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace poseidon;

namespace {

/// Time passes only in sleep_until(), which wakes up `late_ns` after its deadline.
struct test_clock : replay::sleep_clock {
  std::int64_t now = 1'000;
  std::int64_t late_ns = 0;
  std::vector<std::int64_t> deadlines;
  std::int64_t now_ns() override { return now; }
  void sleep_until(std::int64_t deadline_ns) override {
    deadlines.push_back(deadline_ns);
    now = std::max(now, deadline_ns) + late_ns;
  }
  void enter_thread() override {}
};

/// Each call leaves a number of its own.
struct marking_arithmetic : test::plain_arithmetic {
  void update(const solver_rule&, const rule_step&, std::span<const float>, std::span<const float>,
              std::span<float> fresh, std::span<const state_array>,
              value_checksum*) const override {
    fresh[0] = 7;
  }
  void update_average(float, std::span<const float>, std::span<const float>,
                      std::span<float> fresh) const override {
    fresh[0] = 8;
  }
};

/// data (0) -> ip1 (1) -> loss; batch 4. ip1 takes 1 ms forward and 2 ms backward at batch 2.
struct rig {
  net graph = test::build(
      test::input("data", {4, 6}) + test::input("label", {4}) +
      test::layer("ip1", "InnerProduct", "data", "ip1", "inner_product_param { num_output: 5 }") +
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip1\" "
      "bottom: \"label\" top: \"loss\" }\n");
  std::shared_ptr<test_clock> clock = std::make_shared<test_clock>();
  std::shared_ptr<device> dev = make_replay_device(
      parse_profile(
          "net: \"n\" measured: \"m\" batch: 2 gflop_s: 4 layer { name: \"ip1\" forward_ms: 1 "
          "backward_ms: 2 }",
          "p"),
      std::make_shared<test::device_with<marking_arithmetic>>(), clock);
  std::unique_ptr<replica> make(double time_scale = 1, std::vector<bool> by_factors = {}) {
    replica_options o;
    o.by_factors = std::move(by_factors);
    o.time_scale = time_scale;
    return dev->make_replica(graph, {}, o);
  }
  static constexpr std::size_t ip1 = 2;  // behind two inputs
};

constexpr std::int64_t ms = 1'000'000;

pass issued(std::int64_t at) {
  return {0, 0, 0, 0, at};
}

}  // namespace

TEST_CASE(
    "replay: a kernel ends its time, in proportion to the batch and the scale, after it was "
    "issued") {
  rig r;
  r.clock->now = 5'000;
  auto copy = r.make(3);
  copy->at(rig::ip1).forward(issued(5'000));
  CHECK(r.clock->deadlines == std::vector<std::int64_t>{5'000 + 3 * 2 * ms});
}

TEST_CASE("replay: late wake-ups do not add up while the queue is not empty") {
  rig r;
  r.clock->late_ns = 700'000;
  auto copy = r.make();
  auto& ip1 = copy->at(rig::ip1);
  for (int i = 0; i < 3; ++i) ip1.forward(issued(1'000));  // all three wait from the beginning
  ip1.backward(issued(1'000));
  CHECK(r.clock->deadlines ==
        std::vector<std::int64_t>{1'000 + 2 * ms, 1'000 + 4 * ms, 1'000 + 6 * ms, 1'000 + 10 * ms});
}

TEST_CASE(
    "replay: a kernel that is issued when the stream is idle begins then, not when the last one "
    "ended") {
  rig r;
  auto copy = r.make();
  auto& ip1 = copy->at(rig::ip1);
  ip1.forward(issued(1'000));
  r.clock->now = 50 * ms + 300;  // its thread woke up late
  ip1.forward(issued(50 * ms));
  CHECK(r.clock->deadlines.back() == 52 * ms);
  r.clock->now = 90 * ms;
  ip1.forward(issued(0));  // the time of issue is unknown
  CHECK(r.clock->deadlines.back() == 92 * ms);
}

TEST_CASE(
    "replay: a layer that the profile does not name neither takes time nor sleeps, and looks at no "
    "data") {
  rig r;
  auto copy = r.make();
  copy->at(0).feed(batch{});
  for (std::size_t l = 0; l < r.graph.layers.size(); ++l)
    if (l != rig::ip1) copy->at(l).forward(issued(1'000));
  CHECK(r.clock->deadlines.empty());
  copy->at(rig::ip1).forward(issued(1'000));
  CHECK(r.clock->deadlines.back() == 1'000 + 2 * ms);
}

TEST_CASE("replay: two replicas have two streams") {
  rig r;
  auto one = r.make(), other = r.make();
  one->at(rig::ip1).forward(issued(1'000));
  other->at(rig::ip1).forward(issued(1'000));
  CHECK(r.clock->deadlines == std::vector<std::int64_t>{1'000 + 2 * ms, 1'000 + 2 * ms});
}

TEST_CASE("replay: gradients are as long as the parameters, scaled or not, finite, not all zero") {
  rig r;
  for (const double scale : {1.0, 0.1}) {
    INFO(scale);
    scale_parameters(r.graph, scale);
    auto copy = r.make();
    for (std::size_t p = 0; p < r.graph.parameters.size(); ++p) {
      const auto g = copy->gradient(p);
      CHECK(static_cast<std::int64_t>(g.size()) == count(r.graph.parameters[p].shape));
      float largest = 0;
      for (const float v : g) largest = std::max(largest, std::abs(v));
      CHECK(largest > 0);
      CHECK(std::isfinite(largest));
    }
  }
}

TEST_CASE(
    "replay: it says that it does not compute, and leaves sums and updates to the device that "
    "does") {
  rig r;
  CHECK_FALSE(r.dev->computes());
  CHECK(r.dev->describe() == "replay: n, m; sums and updates on plain");
  std::vector<float> a{1, 2}, b{10, 20};
  r.dev->arithmetic()->add(a, b);
  CHECK(a == std::vector<float>{11, 22});
  r.dev->arithmetic()->update({}, {}, b, b, a, {});
  CHECK(a[0] == 7);
  r.dev->arithmetic()->update_average(1, b, b, a);
  CHECK(a[0] == 8);
}

TEST_CASE(
    "replay: a layer that broadcasts factors makes no gradient of its weights, for that its sum "
    "takes "
    "the time of its product") {
  rig r;
  auto copy = r.make(3, {false, false, true, false});
  CHECK(copy->gradient(0).empty());
  std::vector<float> u(4 * 5, 1), v(4 * 6, 1), left(30, 7);
  // The gradient of its weights was all of its backward pass: no layer needs the diff of data.
  copy->at(rig::ip1).backward(issued(1'000));
  CHECK(r.clock->deadlines.empty());
  copy->at(rig::ip1).factors(u, v);
  const auto before = r.clock->now;
  const factor_shape all{1000, 2000, 3000};  // 12 Gflop at 4 Gflop/s, three times as slow
  r.dev->arithmetic()->reconstruct_gradient(all, u, v, left, {});
  CHECK(r.clock->deadlines.back() == before + 9'000 * ms);
  CHECK(left[0] == 7);
  // Products wait for each other.
  r.clock->now = before;
  r.dev->arithmetic()->reconstruct_gradient(all, u, v, left, {});
  CHECK(r.clock->deadlines.back() == before + 18'000 * ms);
}

TEST_CASE("replay: without the rate of products no layer can broadcast factors") {
  rig r;
  r.dev = make_replay_device(parse_profile("batch: 2", "no_rate"),
                             std::make_shared<test::device_with<>>(), r.clock);
  CHECK(r.dev->told_flop_s() == 0);
  CHECK_THROWS_WITH_AS((void)r.make(1, {false, false, true, false}),
                       doctest::Contains("no_rate: the profile has no gflop_s"), spec_error);
  (void)r.make(1, {false, false, false, false});
}

TEST_CASE("replay: a time scale that is not above 0 is refused") {
  rig r;
  CHECK_THROWS_WITH_AS((void)r.make(0),
                       "time_scale is 0.000000, it has to be above 0: how much longer than "
                       "recorded a layer takes.",
                       spec_error);
}
