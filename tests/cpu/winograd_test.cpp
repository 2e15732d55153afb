// Winograd's way of 5x5 windows, as the layers take it. Without AVX-512 oneDNN computes the same nets.
#include "cpu/gather.hpp"
#include "cpu/winograd_layer.hpp"
#include "tests/cpu/hand_net.hpp"
#include "tests/reference/image_layers.hpp"

using namespace poseidon;
using namespace poseidon::test;
namespace ref = poseidon::reference;

namespace {

std::string text_of(const ref::conv& c, const std::string& more = "") {
  return "name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: " +
         std::to_string(c.oc) + " kernel_h: " + std::to_string(c.kh) +
         " kernel_w: " + std::to_string(c.kw) + " stride: " + std::to_string(c.stride) +
         " pad: " + std::to_string(c.pad) + " dilation: " + std::to_string(c.dilation) +
         " group: " + std::to_string(c.groups) + " " + more + " }";
}

hand_net net_of(const ref::conv& c, const std::string& more = "") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {c.n, c.ic, c.h, c.w});
  std::vector<shape> parameters{{c.oc, c.ic / c.groups, c.kh, c.kw}, {c.oc}};
  if (more.find("bias_term: false") != std::string::npos) parameters.pop_back();
  h.layer(text_of(c, more), {{c.n, c.oc, c.oh(), c.ow()}}, parameters);
  return h;
}

bool suits(const ref::conv& c, const std::string& more = "") {
  const hand_net h = net_of(c, more);
  return cpu::suits_winograd(h.n, h.n.layers[1], {c.n, c.ic, c.h, c.w},
                             {c.n, c.oc, c.oh(), c.ow()});
}

// The transformations cost a digit, most of all where a weight's gradient has few terms.
constexpr double tolerance = 2e-5;

// CIFAR-10 quick's, then tiles cut at both edges, rows of tiles longer than what is worked at once, channels
// that do not fill their blocks, every padding, and groups.
const std::vector<ref::conv> shapes = {
    {3, 32, 16, 16, 32, 5, 5, 1, 2}, {5, 32, 8, 8, 64, 5, 5, 1, 2},
    {4, 32, 12, 12, 48, 5, 5},       {2, 32, 15, 9, 32, 5, 5, 1, 2},
    {1, 32, 7, 83, 32, 5, 5, 1, 1},  {1, 46, 17, 18, 47, 5, 5, 1, 3},
    {2, 32, 5, 6, 32, 5, 5, 1, 4},   {2, 96, 13, 13, 64, 5, 5, 1, 2, 1, 2},
};

}  // namespace

TEST_CASE("Winograd's 5x5: forward and backward equal the naive loops for every shape") {
  for (const ref::conv& c : shapes) {
    CAPTURE(text_of(c));
    CHECK(suits(c) == cpu::has_wide_vectors());
    const hand_net h = net_of(c);
    running_net r(h.n, {1, true});
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    r.set("x", x);
    r.forward();
    const auto w = ref::widen(r.parameters[0]), b = ref::widen(r.parameters[1]);
    CHECK(deviation(r.data("y"), ref::convolve(c, ref::widen(x), w, b)) < tolerance);
    r.set_diff("y", dy);
    r.backward();
    const auto g = ref::convolve_backward(c, ref::widen(x), w, ref::widen(dy));
    CHECK(deviation(r.diff("x"), g.dx) < tolerance);
    CHECK(deviation(r.gradient(0), g.dw) < tolerance);
    CHECK(deviation(r.gradient(1), g.db) < tolerance);
  }
}

TEST_CASE("Winograd's 5x5: a ReLU behind it, no bias, and weights that stay as they are") {
  const ref::conv c{3, 32, 9, 16, 32, 5, 5, 1, 2};
  const ref::values zero(32);
  for (const bool learns : {true, false}) {
    hand_net h = net_of(c, "bias_term: false");
    h.layer("name: 'relu' type: 'ReLU' bottom: 'y' top: 'y' relu_param { negative_slope: 0.25 }",
            {});
    h.n.layers[1].learn[0] = learns;
    running_net r(h.n);
    const auto x = noise(r.size(0), 1), dy = noise(r.size(1), 2);
    r.set("x", x);
    r.forward();
    const auto w = ref::widen(r.parameters[0]);
    const auto y = ref::relu(ref::convolve(c, ref::widen(x), w, zero), 0.25);
    CHECK(deviation(r.data("y"), y) < tolerance);
    r.set_diff("y", dy);
    r.backward();
    const auto g =
        ref::convolve_backward(c, ref::widen(x), w, ref::relu_backward(y, ref::widen(dy), 0.25));
    CHECK(deviation(r.diff("x"), g.dx) < tolerance);
    if (learns) CHECK(deviation(r.gradient(0), g.dw) < tolerance);
  }
}

TEST_CASE("Winograd's 5x5: what a pass left in the scratch memory changes no bit of the next") {
  for (const ref::conv& c : shapes) {
    CAPTURE(text_of(c));
    const hand_net h = net_of(c);
    running_net r(h.n);
    r.set("x", noise(r.size(0), 1));
    r.set_diff("y", noise(r.size(1), 2));
    std::vector<std::vector<float>> first, second;
    for (auto* seen : {&first, &second}) {
      r.forward();
      r.backward();
      *seen = {r.data("y"), r.diff("x"), r.gradient(0), r.gradient(1)};
    }
    CHECK(first == second);
  }
}

TEST_CASE("Winograd's 5x5: taken where it pays, and not for engine: CAFFE") {
  const bool wide = cpu::has_wide_vectors();
  CHECK(suits({2, 32, 16, 16, 32, 5, 5, 1, 2}) == wide);
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 2}, "engine: CAFFE"));
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 3, 3, 1, 1}));        // another window
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 2, 2}));        // a stride
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 4, 2}));     // dilation
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 2, 1, 2}));  // too few for two groups
  CHECK_FALSE(suits({2, 80, 16, 16, 80, 5, 5, 1, 2, 1, 2}));  // groups that share a block
  CHECK_FALSE(suits({2, 32, 16, 16, 32, 5, 5, 1, 5}));        // more padding than a window reaches
  CHECK_FALSE(suits({2, 3, 16, 16, 32, 5, 5, 1, 2}));         // a first layer
  CHECK_FALSE(suits({2, 16, 16, 16, 32, 5, 5, 1, 2}));        // a small net
  CHECK_FALSE(suits({2, 40, 16, 16, 40, 5, 5, 1, 2}));        // channels that blocks of 8 hold
  CHECK_FALSE(suits({2, 256, 16, 16, 256, 5, 5, 1, 2}));      // weights beyond the caches
  CHECK_FALSE(suits({64, 32, 5, 5, 32, 5, 5}));               // a tile of which a sixteenth is used
  CHECK_FALSE(suits({1, 32, 8, 8, 32, 5, 5, 1, 2}));          // few tiles
}
