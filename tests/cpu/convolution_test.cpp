#include "cpu/convolution_shape.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/reference/image_layers.hpp"

using namespace poseidon;
using namespace poseidon::test;
namespace ref = poseidon::reference;

namespace {

std::string text_of(const ref::conv& c) {
  return "name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: " +
         std::to_string(c.oc) + " kernel_h: " + std::to_string(c.kh) +
         " kernel_w: " + std::to_string(c.kw) + " stride: " + std::to_string(c.stride) +
         " pad: " + std::to_string(c.pad) + " dilation: " + std::to_string(c.dilation) +
         " group: " + std::to_string(c.groups) + " }";
}

hand_net net_of(const ref::conv& c) {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {c.n, c.ic, c.h, c.w});
  h.layer(text_of(c), {{c.n, c.oc, c.oh(), c.ow()}}, {{c.oc, c.ic / c.groups, c.kh, c.kw}, {c.oc}});
  return h;
}

const std::vector<ref::conv> shapes = {
    {1, 1, 1, 1, 1, 1, 1},
    {1, 1, 7, 6, 3, 3, 2},
    {2, 3, 9, 9, 5, 3, 3, 2, 1},
    {2, 8, 6, 6, 16, 3, 3, 1, 1},
    {3, 20, 12, 12, 50, 5, 5},
    {2, 17, 5, 7, 9, 3, 3, 1, 1},
    {2, 16, 8, 8, 32, 3, 3, 1, 1, 1, 2},
    {2, 6, 7, 7, 4, 3, 3, 1, 2, 2},
    {1, 6, 5, 5, 6, 3, 3, 1, 1, 1, 6},
    {2, 12, 6, 6, 6, 1, 1, 2, 0, 1, 2},
    {1, 3, 27, 27, 16, 11, 11, 4},
    // Winograd's.
    {2, 48, 13, 13, 40, 3, 3, 1, 1},
    {1, 32, 7, 10, 33, 3, 3, 1, 0},
    {3, 64, 14, 14, 64, 3, 3, 1, 1},
};

}  // namespace

TEST_CASE("convolution: forward and backward equal the naive loops for every shape") {
  for (const ref::conv& c : shapes) {
    CAPTURE(text_of(c));
    const hand_net h = net_of(c);
    running_net r(h.n, {1, true});
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    r.set("x", x);
    r.forward();
    const auto w = ref::widen(r.parameters[0]), b = ref::widen(r.parameters[1]);
    CHECK(deviation(r.data("y"), ref::convolve(c, ref::widen(x), w, b)) < 1e-5);
    r.set_diff("y", dy);
    r.backward();
    const auto g = ref::convolve_backward(c, ref::widen(x), w, ref::widen(dy));
    CHECK(deviation(r.diff("x"), g.dx) < 1e-5);
    CHECK(deviation(r.gradient(0), g.dw) < 1e-5);
    CHECK(deviation(r.gradient(1), g.db) < 1e-5);
  }
}

TEST_CASE("convolution: new weights are packed when their version changes, and not before") {
  const ref::conv c{2, 16, 6, 6, 16, 3, 3, 1, 1};
  const hand_net h = net_of(c);
  running_net r(h.n, {1, true});
  const auto x = noise(r.size(0), 1);
  r.set("x", x);
  r.forward();
  const auto before = r.data("y");
  for (float& w : r.parameters[0]) w = -w;
  r.touch();
  r.forward();
  const auto wanted =
      ref::convolve(c, ref::widen(x), ref::widen(r.parameters[0]), ref::widen(r.parameters[1]));
  CHECK(deviation(r.data("y"), wanted) < 1e-5);
  CHECK(before != r.data("y"));

  SUBCASE("values that moved to another buffer are found there") {
    std::vector<float> elsewhere = r.parameters[0];
    for (float& w : elsewhere) w *= 2;
    r.holders[0]->values = elsewhere.data();
    ++r.holders[0]->version;
    r.forward();
    const auto moved =
        ref::convolve(c, ref::widen(x), ref::widen(elsewhere), ref::widen(r.parameters[1]));
    CHECK(deviation(r.data("y"), moved) < 1e-5);
  }
}

TEST_CASE("convolution: a ReLU in place is fused forward and masks backward") {
  for (const int channels : {3, 16}) {
    const ref::conv c{2, channels, 6, 6, 24, 3, 3, 1, 1};
    hand_net h = net_of(c);
    h.layer("name: 'relu' type: 'ReLU' bottom: 'y' top: 'y' relu_param { negative_slope: 0.25 }",
            {});
    running_net r(h.n, {1, true});
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    r.set("x", x);
    r.forward();
    const auto w = ref::widen(r.parameters[0]);
    const auto y = ref::relu(ref::convolve(c, ref::widen(x), w, ref::widen(r.parameters[1])), 0.25);
    CHECK(deviation(r.data("y"), y) < 1e-5);
    r.set_diff("y", dy);
    r.backward();
    const auto g =
        ref::convolve_backward(c, ref::widen(x), w, ref::relu_backward(y, ref::widen(dy), 0.25));
    CHECK(deviation(r.diff("x"), g.dx) < 1e-5);
    CHECK(deviation(r.gradient(0), g.dw) < 1e-5);
  }
}

TEST_CASE("convolution: the first layer computes no bottom diff, and TEST computes neither") {
  hand_net h(::caffe::TEST);
  h.input("x", {1, 3, 5, 5});
  h.layer(
      "name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 4 "
      "kernel_size: 3 }",
      {{1, 4, 3, 3}}, {{4, 3, 3, 3}, {4}});
  running_net test(h.n);
  CHECK(test.r->gradient(0).empty());
  CHECK_THROWS_WITH(test.diff("y"), doctest::Contains("has no diff"));
  h.n.phase = ::caffe::TRAIN;
  running_net train(h.n);
  CHECK(train.r->gradient(0).size() == 108);
  CHECK_THROWS_WITH(train.diff("x"), doctest::Contains("has no diff"));
}

namespace {

struct pooled {
  ref::conv c;
  int kernel, stride, pad;
  bool relu_before, relu_after;
};

/// conv -> [relu] -> max pool -> [relu], with random weights for the top as the "loss".
hand_net pooled_net(const pooled& p, bool diff_of_x) {
  hand_net h;
  h.all_diffs = diff_of_x;
  h.input("x", {p.c.n, p.c.ic, p.c.h, p.c.w});
  h.layer(text_of(p.c), {{p.c.n, p.c.oc, p.c.oh(), p.c.ow()}},
          {{p.c.oc, p.c.ic, p.c.kh, p.c.kw}, {p.c.oc}});
  if (p.relu_before) h.layer("name: 'r1' type: 'ReLU' bottom: 'y' top: 'y'", {});
  const ref::pool q{p.c.n * p.c.oc, p.c.oh(), p.c.ow(), p.kernel, p.stride, p.pad};
  h.layer(
      "name: 'pool' type: 'Pooling' bottom: 'y' top: 'z' pooling_param { pool: MAX kernel_size: " +
          std::to_string(p.kernel) + " stride: " + std::to_string(p.stride) +
          " pad: " + std::to_string(p.pad) + " }",
      {{p.c.n, p.c.oc, q.out(q.h), q.out(q.w)}});
  if (p.relu_after) h.layer("name: 'r2' type: 'ReLU' bottom: 'z' top: 'z'", {});
  return h;
}

}  // namespace

TEST_CASE("sparse convolution: what pooling leaves of a gradient gives the naive gradients") {
  const std::vector<pooled> cases = {
      {{2, 1, 28, 28, 20, 5, 5}, 2, 2, 0, false, false},
      {{2, 20, 12, 12, 50, 5, 5}, 2, 2, 0, false, false},
      {{2, 3, 17, 17, 32, 5, 5, 1, 2}, 3, 2, 0, false, true},
      {{1, 3, 9, 9, 7, 3, 3, 1, 1}, 3, 2, 1, true, false},
      {{2, 16, 8, 8, 16, 3, 3, 1, 1}, 3, 2, 0, true, true},
      {{1, 9, 16, 16, 17, 3, 3, 2, 1}, 2, 2, 0, false, false},
      {{3, 32, 12, 10, 8, 5, 5, 1, 2}, 3, 3, 0, false, false},
      {{1, 2, 2, 2, 1, 1, 1}, 2, 2, 0, false, false},
      {{1, 48, 8, 8, 24, 5, 5, 1, 2}, 2, 2, 0, true, false},
      {{2, 32, 12, 12, 32, 5, 5, 1, 2}, 2, 2, 0, true, false},  // forward in Winograd's way
  };
  for (const pooled& p : cases) {
    CAPTURE(text_of(p.c));
    const hand_net h = pooled_net(p, true);
    running_net r(h.n);
    CHECK_THROWS(static_cast<void>([&] {
      hand_net first = pooled_net(p, false);  // the same without a diff for x
      running_net(first.n).diff("x");
    }()));
    const auto x = noise(r.size(r.index("x")), 1), dz = noise(r.size(r.index("z")), 2);
    r.set("x", x);
    r.forward();
    r.set_diff("z", dz);
    r.backward();
    const auto w = ref::widen(r.parameters[0]);
    auto y = ref::convolve(p.c, ref::widen(x), w, ref::widen(r.parameters[1]));
    if (p.relu_before) y = ref::relu(y);
    const ref::pool q{p.c.n * p.c.oc, p.c.oh(), p.c.ow(), p.kernel, p.stride, p.pad};
    auto z = ref::max_pool(q, y);
    auto dz_wide = ref::widen(dz);
    if (p.relu_after) dz_wide = ref::relu_backward(z, dz_wide);
    auto dy = ref::max_pool(q, y, &dz_wide);
    if (p.relu_before) dy = ref::relu_backward(y, dy);
    const auto g = ref::convolve_backward(p.c, ref::widen(x), w, dy);
    CHECK(deviation(r.gradient(0), g.dw) < 1e-5);
    CHECK(deviation(r.gradient(1), g.db) < 1e-5);
    CHECK(deviation(r.diff("x"), g.dx) < 1e-5);
    // The path with every diff kept is another one and has to agree.
    running_net dense(h.n, {1, true});
    dense.set("x", x);
    dense.forward();
    dense.set_diff("z", dz);
    dense.backward();
    CHECK(deviation(r.gradient(0), dense.gradient(0)) < 1e-5);
    CHECK(deviation(r.diff("x"), dense.diff("x")) < 1e-5);
  }
}

TEST_CASE(
    "sparse convolution: what a ReLU leaves gives the naive gradients, whether few or many are "
    "left") {
  // Biases of -1 and +9 leave few and nearly all gradients: the second takes the dense kernels.
  for (const float bias : {-1.0f, 0.0f, 9.0f}) {
    for (const ref::conv& c :
         {ref::conv{4, 32, 16, 16, 32, 5, 5, 1, 2}, ref::conv{1, 9, 7, 5, 40, 3, 3, 1, 1},
          ref::conv{5, 3, 9, 9, 8, 3, 2, 2, 1}}) {
      CAPTURE(bias);
      CAPTURE(text_of(c));
      hand_net h = net_of(c);
      h.layer("name: 'relu' type: 'ReLU' bottom: 'y' top: 'y'", {});
      running_net r(h.n);
      for (float& b : r.parameters[1]) b = bias;
      r.touch();
      const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
      r.set("x", x);
      r.forward();
      r.set_diff("y", dy);
      r.backward();
      const auto w = ref::widen(r.parameters[0]);
      const auto y = ref::relu(ref::convolve(c, ref::widen(x), w, ref::widen(r.parameters[1])));
      CHECK(deviation(r.data("y"), y) < 1e-5);
      const auto g =
          ref::convolve_backward(c, ref::widen(x), w, ref::relu_backward(y, ref::widen(dy)));
      CHECK(deviation(r.gradient(0), g.dw) < 2e-5);
      CHECK(deviation(r.gradient(1), g.db) < 2e-5);
      CHECK(deviation(r.diff("x"), g.dx) < 2e-5);
    }
  }
}
