#include "actors/parameters/send_order.hpp"

#include "actors/links/frame_queue.hpp"
#include "actors/parameters/chunk_magnitudes.hpp"
#include "tests/actors/fakes.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

using namespace poseidon;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("send_order: chunks leave a link by version, then by magnitude, the largest first") {
  frame_queue q;
  const auto push = [&](unsigned chunk, std::uint64_t priority) {
    q.push({frames::push_gradient{chunk_id{chunk}, clock_id{0}}, {}, priority});
  };
  const float magnitudes[] = {0.5f, 2.0f, 0.0f, infinity, 1e-30f, 0.50001f};
  for (unsigned chunk = 0; chunk < 6; ++chunk) push(chunk, magnitude_order(8, magnitudes[chunk]));
  // newer: it changes more, but no node can use it before all of version 8
  push(6, magnitude_order(9, 1e9f));
  push(7, magnitude_order(7, 1e-9f));
  push(8, 0);  // control
  std::string order;
  while (const auto p = q.take())
    order += std::to_string(value(std::get<frames::push_gradient>(p->of->frame.header).chunk));
  CHECK(order == "873150426");
}

TEST_CASE("send_order: the forward order is that of the layers, behind control frames") {
  CHECK(forward_order(0, layer_id{0}) > 0);
  CHECK(forward_order(7, layer_id{3}) < forward_order(7, layer_id{4}));
}

TEST_CASE("send_order: what an older version waits for goes before all of a newer one") {
  CHECK(forward_order(7, layer_id{1000}) < forward_order(8, layer_id{0}));
  CHECK(forward_order(7, layer_id{1000}) < magnitude_order(8, infinity));
  CHECK(magnitude_order(7, 0) < forward_order(8, layer_id{0}));
}

TEST_CASE("send_order: factors go before the chunks of their version that go by magnitude") {
  CHECK(forward_order(8, layer_id{1000}) < magnitude_order(8, 1e30f));
}

TEST_CASE("send_order: what is not finite is urgent, and every finite value has its place") {
  CHECK(magnitude_order(1, std::nanf("")) == magnitude_order(1, infinity));
  CHECK(magnitude_order(1, infinity) > 1ull << 32);
  CHECK(magnitude_order(1, 0.0f) < 2ull << 32);
  CHECK(magnitude_order(1, -0.0f) == magnitude_order(1, 0.0f));
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const auto draw = [&] {
      return std::ldexp(1.0f + float(random() % 1000), int(random() % 200) - 120);
    };
    const float a = draw(), b = draw();
    CHECK((a > b) == (magnitude_order(3, a) < magnitude_order(3, b)));
  }
}

TEST_CASE("send_order: a relative magnitude is the ratio of two norms") {
  const std::vector<float> change{3, 4}, values{0, 10}, none{0, 0};
  CHECK(relative_magnitude(change, values) == doctest::Approx(0.5));
  CHECK(relative_magnitude(none, values) == 0);
  CHECK(relative_magnitude(none, none) == 0);
  CHECK(relative_magnitude(change, none) == std::numeric_limits<float>::max());
  CHECK(relative_magnitude(std::vector<float>{std::nanf(""), 0}, values) ==
        std::numeric_limits<float>::max());
  CHECK(relative_magnitude({}, {}) == 0);
  // Long, and no multiple of anything: against the plain sum in double.
  std::vector<float> long_change(10007), long_values(10007);
  double c = 0, v = 0;
  for (std::size_t i = 0; i < long_change.size(); ++i) {
    long_change[i] = std::sin(static_cast<float>(i));
    long_values[i] = 2 + std::cos(static_cast<float>(i));
    c += double{long_change[i]} * long_change[i];
    v += double{long_values[i]} * long_values[i];
  }
  CHECK(relative_magnitude(long_change, long_values) ==
        doctest::Approx(std::sqrt(c / v)).epsilon(1e-5));
}

TEST_CASE("chunk_magnitudes: each chunk of the sum is held against the values it will change") {
  auto store = test::one_parameter_store(4, 2, 2, 1);
  const float values[] = {1, 0, 0, 8};
  std::copy_n(values, 4, store->values(test::only_parameter, 3).begin());
  store->publish(test::only_parameter, 3);
  std::vector<float> r0{2, 0, 0, 2}, r1{2, 0, 0, 2};
  const auto sum = std::make_shared<gradient_sum>(
      std::make_shared<test::plain_arithmetic>(),
      std::vector<std::vector<std::span<float>>>{{r0}, {r1}}, 1, 1, 1);
  chunk_magnitudes m(sum, store, {test::only_parameter}, 0.5f, 1);
  CHECK_FALSE(sum->contribute(4, 0));
  CHECK(sum->contribute(4, 0));
  m.weigh(4);
  CHECK(m.of(4, 0, 0) == doctest::Approx(2.0));
  CHECK(m.of(4, 0, 1) == doctest::Approx(0.25));
}
