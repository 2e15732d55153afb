#include "tests/cpu/finite_difference.hpp"
#include "tests/reference/image_layers.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

struct layer_case {
  std::string type, parameters;
  shape bottom, top;
  std::vector<shape> learned;
  float offset = 0;  ///< added to the inputs, for functions that are not defined everywhere
};

const std::vector<layer_case> smooth = {
    {"Sigmoid", "", {2, 3}, {2, 3}, {}},
    {"TanH", "", {2, 3, 3, 1}, {2, 3, 3, 1}, {}},
    {"ELU", "elu_param { alpha: 0.5 }", {17}, {17}, {}},
    {"BNLL", "", {2, 9}, {2, 9}, {}},
    {"Power", "power_param { power: 3 scale: 0.5 shift: 2 }", {2, 5}, {2, 5}, {}},
    {"Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }", {2, 5}, {2, 5}, {}},
    {"Log", "log_param { base: 10 scale: 0.5 shift: 1 }", {2, 5}, {2, 5}, {}, 2},
    {"AbsVal", "", {2, 5}, {2, 5}, {}, 2},
    {"ReLU", "relu_param { negative_slope: 0.1 }", {1, 7}, {1, 7}, {}, 2},
    {"Softmax", "", {2, 5, 3}, {2, 5, 3}, {}},
    {"Softmax", "softmax_param { axis: 0 }", {4, 3}, {4, 3}, {}},
    {"LRN",
     "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 2 }",
     {2, 5, 3, 2},
     {2, 5, 3, 2},
     {}},
    {"LRN",
     "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }",
     {1, 2, 4, 4},
     {1, 2, 4, 4},
     {}},
    {"InnerProduct", "inner_product_param { num_output: 4 }", {2, 3, 2, 1}, {2, 4}, {{4, 6}, {4}}},
    {"InnerProduct",
     "inner_product_param { num_output: 1 bias_term: false }",
     {1, 1},
     {1, 1},
     {{1, 1}}},
    {"InnerProduct",
     "inner_product_param { num_output: 9 transpose: true axis: 2 }",
     {2, 3, 5},
     {2, 3, 9},
     {{5, 9}, {9}}},
    {"InnerProduct",
     "inner_product_param { num_output: 3 axis: -1 }",
     {2, 2, 4},
     {2, 2, 3},
     {{3, 4}, {3}}},
    {"Convolution",
     "convolution_param { num_output: 3 kernel_size: 3 pad: 1 }",
     {1, 2, 4, 4},
     {1, 3, 4, 4},
     {{3, 2, 3, 3}, {3}}},
    {"Pooling",
     "pooling_param { pool: AVE kernel_size: 3 stride: 2 }",
     {1, 2, 6, 6},
     {1, 2, 3, 3},
     {}},
    {"Flatten", "", {2, 3, 2}, {2, 6}, {}},
    {"Reshape", "reshape_param { shape { dim: 3 dim: 4 } }", {2, 6}, {3, 4}, {}},
};

}  // namespace

TEST_CASE("gradients: backward is the derivative of forward for every smooth layer") {
  for (const layer_case& l : smooth) {
    CAPTURE(l.type);
    CAPTURE(l.parameters);
    hand_net h;
    h.all_diffs = true;
    h.input("x", l.bottom);
    h.layer("name: 'l' type: '" + l.type + "' bottom: 'x' top: 'y' " + l.parameters, {l.top},
            l.learned);
    running_net r(h.n, {1, true});
    auto x = noise(r.size(0), 5);
    for (float& v : x) v += l.offset;
    r.set("x", x);
    CHECK(worst_gradient(r, "x", "y", 1e-2f) < 5e-3);
  }
}

TEST_CASE("gradients: the losses, with every normalization and with ignored labels") {
  for (const std::string p :
       {"", "loss_param { normalization: FULL }", "loss_param { normalization: BATCH_SIZE }",
        "loss_param { normalization: NONE }", "loss_weight: 0.3 loss_param { ignore_label: 2 }",
        "loss_param { normalize: false ignore_label: 1 }"}) {
    CAPTURE(p);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {3, 4, 2});
    h.input("label", {3, 2});
    h.layer("name: 'loss' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'label' top: 'l' " + p, {{}});
    running_net r(h.n, {1, true});
    r.set("x", noise(24, 3));
    r.set("label", {0, 1, 2, 3, 2, 1});
    CHECK(worst_gradient(r, "x", "l", 1e-2f) < 5e-3);
  }
  for (const std::string type : {"EuclideanLoss", "SigmoidCrossEntropyLoss"}) {
    CAPTURE(type);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {3, 4});
    h.input("label", {3, 4});
    h.layer("name: 'loss' type: '" + type + "' bottom: 'x' bottom: 'label' top: 'l' loss_weight: 2",
            {{}});
    running_net r(h.n, {1, true});
    r.set("x", noise(12, 3));
    r.set("label", {0, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0});
    CHECK(worst_gradient(r, "x", "l", 1e-2f) < 5e-3);
  }
}

TEST_CASE("gradients: layers with two bottoms, and in-place chains") {
  for (const std::string p : {"type: 'Eltwise' eltwise_param { operation: PROD }",
                              "type: 'Eltwise' eltwise_param { coeff: 2 coeff: -1 }",
                              "type: 'Eltwise' eltwise_param { operation: MAX }"}) {
    CAPTURE(p);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {2, 3});
    h.input("z", {2, 3});
    h.layer("name: 'e' bottom: 'x' bottom: 'z' top: 'y' " + p, {{2, 3}});
    running_net r(h.n, {1, true});
    r.set("x", noise(6, 3));
    r.set("z", noise(6, 4));
    CHECK(worst_gradient(r, "x", "y", 1e-3f) < 5e-3);
    CHECK(worst_gradient(r, "z", "y", 1e-3f) < 5e-3);
  }
  for (const std::string type : {"Sigmoid", "TanH", "ELU", "BNLL", "Exp", "Dropout"}) {
    CAPTURE(type);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {2, 3, 4, 4});
    h.layer(
        "name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 5 "
        "kernel_size: 3 }",
        {{2, 5, 2, 2}}, {{5, 3, 3, 3}, {5}});
    h.layer("name: 'f' type: '" + type + "' bottom: 'y' top: 'y'", {});
    running_net r(h.n, {1, true});
    r.set("x", noise(96, 3));
    CHECK(worst_gradient(r, "x", "y", 1e-2f) < 1e-2);
  }
}

TEST_CASE("LRN: equals the naive loop for blocked layouts too") {
  for (const int channels : {1, 8, 20}) {
    hand_net h;
    h.input("x", {2, channels, 3, 3});
    h.layer("name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: " +
                std::to_string(channels) + " kernel_size: 1 }",
            {{2, channels, 3, 3}}, {{channels, channels, 1, 1}, {channels}});
    h.layer(
        "name: 'n' type: 'LRN' bottom: 'y' top: 'z' lrn_param { local_size: 5 alpha: 0.1 beta: "
        "0.75 }",
        {{2, channels, 3, 3}});
    running_net r(h.n, {1, true});
    r.set("x", noise(r.size(0), 1));
    r.forward();
    const auto y = reference::widen(r.data("y"));
    CHECK(deviation(r.data("z"), reference::lrn_across(2, channels, 9, 5, 0.1, 0.75, 1, y)) < 1e-5);
  }
}
