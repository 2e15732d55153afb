#include "tests/cpu/finite_difference.hpp"
#include "tests/reference/channel_layers.hpp"
#include "tests/reference/image_layers.hpp"

using namespace poseidon;
using namespace poseidon::test;
namespace ref = poseidon::reference;

namespace {

const std::string eps = "batch_norm_param { eps: 0.01 } ";

/// A 1x1 convolution brings the blocked layouts that follow from its channels.
hand_net behind_convolution(int images, int channels, int side) {
  hand_net h;
  h.input("x", {images, 3, side, side});
  h.layer("name: 'conv' type: 'Convolution' bottom: 'x' top: 'a' convolution_param { num_output: " +
              std::to_string(channels) + " kernel_size: 1 }",
          {{images, channels, side, side}}, {{channels, 3, 1, 1}, {channels}});
  return h;
}

/// Convolution, BatchNorm, Scale and ReLU, all in one blob, then a sum with a ReLU, as ResNet has them; then
/// something with a gradient that differs everywhere.
hand_net residual_block(int images, int channels, int side, bool in_place) {
  hand_net h = behind_convolution(images, channels, side);
  const shape s{images, channels, side, side};
  const std::string b = in_place ? "a" : "b", c = in_place ? "a" : "c";
  h.layer("name: 'bn' type: 'BatchNorm' bottom: 'a' top: '" + b + "' " + eps, {s},
          {{channels}, {channels}, {1}});
  h.layer("name: 'scale' type: 'Scale' bottom: '" + b + "' top: '" + c +
              "' scale_param { bias_term: true }",
          {s}, {{channels}, {channels}});
  h.layer("name: 'relu' type: 'ReLU' bottom: '" + c + "' top: '" + c + "'", {s});
  h.input("short", s);
  h.layer("name: 'sum' type: 'Eltwise' bottom: '" + c + "' bottom: 'short' top: 'e'", {s});
  h.layer("name: 'relu2' type: 'ReLU' bottom: 'e' top: 'e' relu_param { negative_slope: 0.1 }",
          {s});
  h.input("label", s);
  h.layer("name: 'loss' type: 'EuclideanLoss' bottom: 'e' bottom: 'label' top: 'l'", {{}});
  return h;
}

}  // namespace

TEST_CASE("BatchNorm: equals the naive loops in plain and blocked layouts, forward and backward") {
  for (const int channels : {1, 8, 20, 48}) {
    for (const int side : {1, 3, 9}) {
      CAPTURE(channels);
      CAPTURE(side);
      hand_net h = behind_convolution(4, channels, side);
      h.all_diffs = true;
      h.layer("name: 'bn' type: 'BatchNorm' bottom: 'a' top: 'y' " + eps,
              {{4, channels, side, side}}, {{channels}, {channels}, {1}});
      running_net r(h.n, {1, true});
      r.set("x", noise(r.size(0), 1));
      r.forward();
      const ref::channel_blob b{4, static_cast<std::size_t>(channels),
                                static_cast<std::size_t>(side * side)};
      const auto n = ref::normalize(b, ref::widen(r.data("a")), 0.01);
      CHECK(deviation(r.data("y"), n.y) < 1e-5);
      const auto dy = noise(n.y.size(), 9);
      r.set_diff("y", dy);
      r.backward();
      CHECK(deviation(r.diff("a"), ref::normalize_backward(b, n, ref::widen(dy), 0.01)) < 1e-5);
    }
  }
}

TEST_CASE(
    "BatchNorm: the change of its blobs is mean, unbiased variance and 1, weighted by what "
    "follows") {
  hand_net h;
  h.input("x", {3, 2, 2, 1});
  h.layer(
      "name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { "
      "moving_average_fraction: 0.9 }",
      {{3, 2, 2, 1}}, {{2}, {2}, {1}});
  running_net r(h.n);
  r.set("x", noise(12, 1));
  const auto n = ref::normalize({3, 2, 2}, ref::widen(noise(12, 1)), 1e-5);
  for (const std::uint64_t after : {0, 3}) {
    r.now.passes_after = after;
    r.forward();
    r.backward();
    const double weight = std::pow(0.9, static_cast<double>(after));
    for (std::size_t c = 0; c < 2; ++c) {
      CHECK(r.gradient(0)[c] == doctest::Approx(weight * n.mean[c]).epsilon(1e-5));
      CHECK(r.gradient(1)[c] == doctest::Approx(weight * n.variance[c] * 6 / 5).epsilon(1e-5));
    }
    CHECK(r.gradient(2)[0] == doctest::Approx(weight));
  }
}

TEST_CASE(
    "BatchNorm: a batch of one value per channel has variance 0, and its correction divides by 1") {
  hand_net h;
  h.input("x", {1, 2});
  h.layer("name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y'", {{1, 2}}, {{2}, {2}, {1}});
  running_net r(h.n);
  r.set("x", {3, -4});
  r.forward();
  r.backward();
  CHECK(r.data("y") == std::vector<float>{0, 0});
  CHECK(r.gradient(0) == std::vector<float>{3, -4});
  CHECK(r.gradient(1) == std::vector<float>{0, 0});
}

TEST_CASE("BatchNorm: in TEST it uses its blobs over their factor, and zeros where that is zero") {
  for (const float factor : {4.0f, 0.0f}) {
    hand_net h(::caffe::TEST);
    h.input("x", {1, 2, 1, 2});
    h.layer("name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { eps: 1 }",
            {{1, 2, 1, 2}}, {{2}, {2}, {1}});
    running_net r(h.n);
    r.parameters[0] = {4, 8};
    r.parameters[1] = {12, 32};
    r.parameters[2] = {factor};
    for (std::size_t p = 0; p < 3; ++p) r.holders[p]->values = r.parameters[p].data();
    r.set("x", {1, 5, 2, 8});
    r.forward();
    if (factor != 0) {
      CHECK(r.data("y") == std::vector<float>{0, 2, 0, 2});
    } else {
      CHECK(r.data("y") == std::vector<float>{1, 5, 2, 8});
    }
  }
}

TEST_CASE("BatchNorm: backward is the derivative of forward, in place too") {
  for (const std::string top : {"y", "x"}) {
    hand_net h;
    h.all_diffs = true;
    h.input("x", {3, 2, 2, 2});
    if (top == "x") {  // a copy, because the probe writes x again and again
      h.layer("name: 'p' type: 'Power' bottom: 'x' top: 'z'", {{3, 2, 2, 2}});
      h.layer("name: 'bn' type: 'BatchNorm' bottom: 'z' top: 'z' " + eps, {{3, 2, 2, 2}},
              {{2}, {2}, {1}});
    } else {
      h.layer("name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'z' " + eps, {{3, 2, 2, 2}},
              {{2}, {2}, {1}});
    }
    running_net r(h.n, {1, true});
    r.set("x", noise(24, 5));
    r.forward();
    r.parameters.clear();  // statistics, not learned: no derivative to compare with
    CHECK(worst_gradient(r, "x", "z", 1e-2f) < 5e-3);
  }
}

TEST_CASE(
    "BatchNorm with Scale and ReLU in place: shared work gives the gradients of separate layers") {
  for (const int channels : {5, 8, 32}) {
    for (const bool in_place : {false, true}) {
      CAPTURE(channels);
      CAPTURE(in_place);
      const hand_net h = residual_block(4, channels, 5, in_place);
      running_net fast(h.n), apart(h.n, {1, true});
      for (running_net* r : {&fast, &apart}) {
        r->set("x", noise(300, 1));
        r->set("short", noise(static_cast<std::size_t>(4 * channels * 25), 3));
        r->set("label", noise(static_cast<std::size_t>(4 * channels * 25), 2));
        r->forward();
        r->backward();
      }
      CHECK(fast.data("l") == apart.data("l"));
      // conv weights and bias, statistics, factor and bias
      for (std::size_t p = 0; p < h.n.parameters.size(); ++p) {
        CAPTURE(p);
        if (p == 1) continue;  // a bias before BatchNorm: its gradient is rounding and nothing else
        CHECK(deviation(fast.gradient(p), apart.gradient(p)) < 1e-5);
      }
    }
  }
}
