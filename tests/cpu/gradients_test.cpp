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
    {"Swish", "swish_param { beta: 1.5 }", {2, 5}, {2, 5}, {}},
    {"Clip", "clip_param { min: -0.4 max: 0.6 }", {2, 5}, {2, 5}, {}, 2},
    {"PReLU", "", {2, 3, 2, 2}, {2, 3, 2, 2}, {{3}}},
    {"PReLU", "prelu_param { channel_shared: true }", {2, 3, 4}, {2, 3, 4}, {{}}},
    {"Scale", "", {2, 3, 2, 2}, {2, 3, 2, 2}, {{3}}},
    {"Scale",
     "scale_param { bias_term: true axis: -2 num_axes: 2 }",
     {2, 3, 4},
     {2, 3, 4},
     {{3, 4}, {3, 4}}},
    {"Scale", "scale_param { num_axes: 0 }", {2, 3}, {2, 3}, {{}}},
    {"Bias", "bias_param { axis: 0 num_axes: -1 }", {2, 3}, {2, 3}, {{2, 3}}},
    {"Bias", "", {2, 17, 3, 1}, {2, 17, 3, 1}, {{17}}},
    {"MVN", "", {2, 3, 3, 2}, {2, 3, 3, 2}, {}},
    {"MVN", "mvn_param { across_channels: true }", {2, 3, 2, 2}, {2, 3, 2, 2}, {}},
    {"MVN", "mvn_param { normalize_variance: false }", {2, 3, 2, 2}, {2, 3, 2, 2}, {}},
    {"Reduction", "reduction_param { operation: SUM coeff: 0.5 }", {2, 5}, {}, {}},
    {"Reduction", "reduction_param { operation: ASUM axis: -1 }", {2, 5}, {2}, {}, 2},
    {"Reduction", "reduction_param { operation: SUMSQ axis: 1 coeff: 3 }", {2, 5, 2}, {2}, {}},
    {"Reduction", "reduction_param { operation: MEAN axis: 2 }", {2, 5, 2}, {2, 5}, {}},
    {"Tile", "tile_param { tiles: 3 axis: 1 }", {2, 3, 2}, {2, 9, 2}, {}},
    {"Im2col",
     "convolution_param { kernel_size: 3 stride: 2 pad: 1 }",
     {2, 2, 4, 5},
     {2, 18, 2, 3},
     {}},
    {"Im2col", "convolution_param { kernel_size: 2 dilation: 2 }", {1, 2, 5}, {1, 4, 3}, {}},
    {"SPP", "spp_param { pyramid_height: 2 pool: AVE }", {2, 2, 5, 6}, {2, 10}, {}},
    {"Deconvolution",
     "convolution_param { num_output: 3 kernel_size: 4 stride: 2 pad: 1 }",
     {1, 2, 3, 3},
     {1, 3, 6, 6},
     {{2, 3, 4, 4}, {3}}},
    {"Deconvolution",
     "convolution_param { num_output: 4 kernel_size: 2 group: 2 bias_term: false }",
     {2, 6, 2, 2},
     {2, 4, 3, 3},
     {{6, 2, 2, 2}}},
    {"Convolution",
     "convolution_param { num_output: 2 kernel_size: 2 }",
     {1, 2, 3, 3, 3},
     {1, 2, 2, 2, 2},
     {{2, 2, 2, 2, 2}, {2}}},
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

TEST_CASE("gradients: the losses of classes and of pairs") {
  for (const std::string p :
       {"type: 'HingeLoss'", "type: 'HingeLoss' hinge_loss_param { norm: L2 } loss_weight: 0.5",
        "type: 'MultinomialLogisticLoss'",
        "type: 'InfogainLoss' bottom: 'matrix' loss_param { ignore_label: 2 }",
        "type: 'InfogainLoss' bottom: 'matrix' loss_param { normalization: NONE }"}) {
    CAPTURE(p);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {4, 3});
    h.input("label", {4});
    h.input("matrix", {3, 3});
    h.layer("name: 'loss' bottom: 'x' bottom: 'label' top: 'l' " + p, {{}});
    if (h.n.layers.back().bottoms.size() == 3) h.n.layers.back().propagate_down[2] = false;
    running_net r(h.n, {1, true});
    auto x = noise(12, 3);
    for (float& v : x) v = 0.5f + 0.4f * v;  // positive: one of the losses takes probabilities
    r.set("x", x);
    r.set("label", {0, 2, 1, 2});
    r.set("matrix", {1, 0.2f, 0, 0.1f, 0.5f, 0.3f, 0, 0.7f, 2});
    CHECK(worst_gradient(r, "x", "l", 1e-3f) < 5e-3);
  }
  for (const std::string p : {"", "margin: 4", "margin: 2.5 legacy_version: true"}) {
    CAPTURE(p);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {4, 3});
    h.input("z", {4, 3});
    h.input("label", {4});
    h.layer(
        "name: 'loss' type: 'ContrastiveLoss' bottom: 'x' bottom: 'z' bottom: 'label' top: 'l' "
        "contrastive_loss_param { " +
            p + " }",
        {{}});
    running_net r(h.n, {1, true});
    r.set("x", noise(12, 3));
    r.set("z", noise(12, 4));
    r.set("label", {0, 1, 0, 1});
    CHECK(worst_gradient(r, "x", "l", 1e-3f) < 5e-3);
    CHECK(worst_gradient(r, "z", "l", 1e-3f) < 5e-3);
  }
}

TEST_CASE("gradients: layers that take some values of a bottom, some of them several times") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {4, 3, 3});
  h.input("label", {3});
  h.layer("name: 'r' type: 'BatchReindex' bottom: 'x' bottom: 'label' top: 'y'", {{3, 3, 3}});
  h.input("like", {3, 2, 1});
  h.layer(
      "name: 'c' type: 'Crop' bottom: 'y' bottom: 'like' top: 'z' crop_param { axis: 1 offset: 1 "
      "offset: 2 }",
      {{3, 2, 1}});
  running_net r(h.n, {1, true});
  r.set("x", noise(36, 3));
  r.set("label", {3, 0, 3});
  CHECK(worst_gradient(r, "x", "z", 1e-2f) < 5e-3);
  const auto x = noise(36, 3);
  r.forward();
  const auto z = r.data("z");
  CHECK(z == std::vector<float>{x[27 + 5], x[27 + 8], x[5], x[8], x[27 + 5], x[27 + 8]});
}

TEST_CASE("gradients: tables, second bottoms and parameters as blobs") {
  hand_net h;
  h.all_diffs = true;
  h.input("x", {2, 3});
  h.input("label", {2});
  h.layer(
      "name: 'e' type: 'Embed' bottom: 'label' top: 'e' embed_param { num_output: 3 input_dim: 4 }",
      {{2, 3}}, {{4, 3}, {3}});
  h.layer("name: 'p' type: 'Parameter' top: 'p' parameter_param { shape { dim: 3 } }", {{3}},
          {{3}});
  h.layer(
      "name: 's' type: 'Scale' bottom: 'x' bottom: 'p' top: 'y' scale_param { bias_term: true }",
      {{2, 3}}, {{3}});
  h.layer("name: 'b' type: 'Bias' bottom: 'y' bottom: 'e' top: 'z' bias_param { axis: 0 }",
          {{2, 3}});
  running_net r(h.n, {1, true});
  r.set("x", noise(6, 3));
  r.set("label", {3, 3});
  CHECK(worst_gradient(r, "x", "z", 1e-2f) < 5e-3);
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
  for (const std::string type :
       {"Sigmoid", "TanH", "ELU", "BNLL", "Exp", "Dropout", "AbsVal", "Swish"}) {
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

TEST_CASE("gradients: LSTMUnit, where a sequence continues and where it begins") {
  for (const std::string top : {"c", "h"}) {
    hand_net h;
    h.all_diffs = true;
    h.input("before", {1, 3, 2});
    h.input("x", {1, 3, 8});
    h.input("label", {1, 3});
    h.layer(
        "name: 'u' type: 'LSTMUnit' bottom: 'before' bottom: 'x' bottom: 'label' top: 'c' top: 'h'",
        {{1, 3, 2}, {1, 3, 2}});
    running_net r(h.n, {1, true});
    r.set("before", noise(6, 1));
    r.set("x", noise(24, 2));
    r.set("label", {1, 0, 1});
    CHECK(worst_gradient(r, "x", top, 1e-2f) < 5e-3);
    CHECK(worst_gradient(r, "before", top, 1e-2f) < 5e-3);
  }
}
