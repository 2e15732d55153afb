#include "tests/cpu/finite_difference.hpp"
#include "tests/reference/image_layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace poseidon;
using namespace poseidon::test;
namespace ref = poseidon::reference;

namespace {

struct shape_case {
  int n, c, h, w, kernel, stride, pad;
};
const std::vector<shape_case> cases = {
    {1, 1, 1, 1, 1, 1, 0},    {2, 3, 6, 8, 2, 2, 0},    {2, 8, 7, 7, 3, 2, 0},
    {1, 16, 12, 12, 3, 2, 1}, {1, 20, 9, 5, 3, 3, 1},   {2, 5, 6, 6, 4, 3, 2},
    {1, 33, 28, 28, 3, 1, 1}, {1, 8, 20, 20, 17, 1, 0}, {1, 2, 4, 4, 2, 3, 0},
    {3, 50, 8, 8, 2, 2, 0},   {2, 16, 5, 9, 3, 1, 0},   {1, 16, 3, 4, 3, 1, 2},
    {2, 32, 1, 6, 3, 1, 1},   {2, 24, 3, 5, 4, 4, 0},   {1, 3, 6, 6, 7, 7, 0},
};

/// The pooling alone (plain layout), or behind a 1x1 convolution that brings the blocked layouts.
hand_net pooling_net(const shape_case& s, const std::string& how, bool blocked) {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {s.n, s.c, s.h, s.w});
  if (blocked) {
    h.layer(
        "name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: " +
            std::to_string(s.c) + " kernel_size: 1 }",
        {{s.n, s.c, s.h, s.w}}, {{s.c, s.c, 1, 1}, {s.c}});
  }
  const ref::pool p{1, s.h, s.w, s.kernel, s.stride, s.pad};
  h.layer("name: 'pool' type: 'Pooling' bottom: '" + std::string(blocked ? "y" : "x") +
              "' top: 'z' pooling_param { pool: " + how +
              " kernel_size: " + std::to_string(s.kernel) + " stride: " + std::to_string(s.stride) +
              " pad: " + std::to_string(s.pad) + " }",
          {{s.n, s.c, p.out(s.h), p.out(s.w)}});
  return h;
}

}  // namespace

TEST_CASE("pooling: MAX and AVE equal the naive windows, in plain and in blocked layouts") {
  for (const std::string how : {"MAX", "AVE"}) {
    for (const bool blocked : {false, true}) {
      for (const shape_case& s : cases) {
        CAPTURE(how);
        CAPTURE(blocked);
        CAPTURE(s.c);
        CAPTURE(s.kernel);
        const hand_net h = pooling_net(s, how, blocked);
        running_net r(h.n, {1, true});
        r.set("x", noise(r.size(0), 1));
        r.forward();
        const std::string bottom = blocked ? "y" : "x";
        const auto x = ref::widen(r.data(bottom));
        const auto dz = noise(r.size(r.index("z")), 2);
        const ref::pool p{s.n * s.c, s.h, s.w, s.kernel, s.stride, s.pad};
        const auto wide = ref::widen(dz);
        const auto pool = how == "MAX" ? ref::max_pool : ref::ave_pool;
        CHECK(deviation(r.data("z"), pool(p, x, nullptr)) < 1e-6);
        r.set_diff("z", dz);
        r.backward();
        CHECK(deviation(r.diff(bottom), pool(p, x, &wide)) < 1e-6);
      }
    }
  }
}

TEST_CASE("pooling: of equal maxima the first one of the window gets the gradient") {
  for (const bool blocked : {false, true}) {
    hand_net h;
    h.all_diffs = true;
    h.input("x", {1, 8, 4, 4});
    if (blocked) {
      h.layer(
          "name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 8 "
          "kernel_size: 1 }",
          {{1, 8, 4, 4}}, {{8, 8, 1, 1}, {8}});
    }
    h.layer("name: 'p' type: 'Pooling' bottom: '" + std::string(blocked ? "y" : "x") +
                "' top: 'z' pooling_param { pool: MAX kernel_size: 2 stride: 2 }",
            {{1, 8, 2, 2}});
    running_net r(h.n, {1, true});
    r.set("x", std::vector<float>(128, 0.5f));
    r.forward();
    r.set_diff("z", std::vector<float>(32, 1.0f));
    r.backward();
    const auto dx = r.diff(blocked ? "y" : "x");
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const bool first = i % 4 % 2 == 0 && i / 4 % 4 % 2 == 0;
      CHECK(dx[i] == (first ? 1.0f : 0.0f));
    }
  }
}

TEST_CASE(
    "pooling: STOCHASTIC draws values of the window in proportion to them, by sample and not by "
    "batch") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {400, 1, 2, 2});
  h.layer(
      "name: 'p' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { pool: STOCHASTIC "
      "kernel_size: 2 }",
      {{400, 1, 1, 1}});
  running_net r(h.n, {1, true});
  std::vector<float> x;
  for (int n = 0; n < 400; ++n) x.insert(x.end(), {1, 0, 2, 5});
  r.set("x", x);
  r.forward();
  const auto y = r.data("y");
  const auto times = [&](float v) { return std::count(y.begin(), y.end(), v); };
  CHECK(times(0) == 0);
  CHECK(times(1) == doctest::Approx(50).epsilon(0.4));
  CHECK(times(2) == doctest::Approx(100).epsilon(0.3));
  CHECK(times(1) + times(2) + times(5) == 400);
  const auto dy = noise(400, 3);
  r.set_diff("y", dy);
  r.backward();
  const auto dx = r.diff("x");
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(dx[i] == (x[i] == y[i / 4] ? dy[i / 4] : 0));

  r.now.first_sample = 100;
  r.forward();
  const auto later = r.data("y");
  CHECK(std::equal(y.begin() + 100, y.end(), later.begin()));
}

TEST_CASE("pooling: STOCHASTIC in TEST is the mean of the window weighted by itself") {
  hand_net h(::caffe::TEST);
  h.input("x", {1, 2, 2, 2});
  h.layer(
      "name: 'p' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { pool: STOCHASTIC "
      "kernel_size: 2 }",
      {{1, 2, 1, 1}});
  running_net r(h.n);
  r.set("x", {1, 0, 2, 5, 0, 0, 0, 0});
  r.forward();
  CHECK(r.data("y") == std::vector<float>{30.0f / 8, 0});
}

TEST_CASE("SPP: each level is a pooling of its own, in one row") {
  for (const std::string how : {"MAX", "AVE"}) {
    CAPTURE(how);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {2, 3, 6, 6});
    h.layer("name: 's' type: 'SPP' bottom: 'x' top: 'y' spp_param { pyramid_height: 2 pool: " +
                how + " }",
            {{2, 15}});
    running_net r(h.n, {1, true});
    r.set("x", noise(216, 1));
    r.forward();
    const auto x = ref::widen(noise(216, 1));
    const auto pooled = [&](int kernel) {
      const ref::pool p{6, 6, 6, kernel, kernel, 0};
      return how == "MAX" ? ref::max_pool(p, x) : ref::ave_pool(p, x);
    };
    const auto one = pooled(6), four = pooled(3);
    ref::values wanted;
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t c = 0; c < 3; ++c) wanted.push_back(one[n * 3 + c]);
      for (std::size_t i = 0; i < 12; ++i) wanted.push_back(four[n * 12 + i]);
    }
    CHECK(deviation(r.data("y"), wanted) < 1e-6);
    CHECK(worst_gradient(r, "x", "y", 1e-4f) < 2e-2);
  }
}

TEST_CASE("pooling: NaNs in padded windows neither crash the backward pass nor vanish") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {1, 3, 6, 6});
  h.layer(
      "name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 8 "
      "kernel_size: 3 pad: 1 }",
      {{1, 8, 6, 6}}, {{8, 3, 3, 3}, {8}});
  h.layer(
      "name: 'p' type: 'Pooling' bottom: 'y' top: 'z' pooling_param { pool: MAX kernel_size: 3 "
      "stride: 2 pad: 1 }",
      {{1, 8, 4, 4}});
  running_net r(h.n);
  r.set("x", std::vector<float>(108, std::numeric_limits<float>::quiet_NaN()));
  r.forward();
  r.set_diff("z", std::vector<float>(128, 1.0f));
  r.backward();
  CHECK(std::isnan(r.data("z")[0]));
  CHECK(std::isnan(r.gradient(0)[0]));
  CHECK(r.r->first_nonfinite() == "x");
}
