// Layers that treat each value or each channel separately, against the CPU's.
#include "tests/gpu/layers/both_backends.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

const shape blob_shape{3, 4, 5, 6};

/// The layer alone, and in place behind a layer that keeps its own values.
void check_both_ways(const std::string& text, const std::vector<shape>& parameters = {}) {
  CAPTURE(text);
  check_both(one_layer(text, {blob_shape}, {blob_shape}, parameters).h.n);
  hand_net h;
  h.all_diffs = true;
  h.input("x", blob_shape);
  h.layer("name: 'before' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 shift: 0.1 }",
          {blob_shape});
  h.layer("name: 'layer' " + text + " bottom: 'y' top: 'y'", {}, parameters);
  check_both(h.n);
}

}  // namespace

TEST_CASE("gpu: activations equal the CPU's, in place and not") {
  for (const std::string text :
       {"type: 'ReLU'", "type: 'ReLU' relu_param { negative_slope: 0.1 }",
        "type: 'ReLU' relu_param { negative_slope: -0.3 }", "type: 'Sigmoid'", "type: 'TanH'",
        "type: 'AbsVal'", "type: 'ELU' elu_param { alpha: 0.7 }", "type: 'BNLL'",
        "type: 'Power' power_param { power: 2 scale: 0.5 shift: 3 }",
        "type: 'Power' power_param { power: 1 scale: 3 shift: 1 }",
        "type: 'Power' power_param { power: 0 }", "type: 'Exp'",
        "type: 'Exp' exp_param { base: 2 scale: 0.5 shift: 1 }",
        "type: 'Log' log_param { scale: 0.3 shift: 2 }",
        "type: 'Log' log_param { base: 10 scale: 0.3 shift: 2 }",
        "type: 'Threshold' threshold_param { threshold: 0.2 }",
        "type: 'Clip' clip_param { min: -0.5 max: 0.4 }",
        "type: 'Swish' swish_param { beta: 1.5 }"})
    check_both_ways(text);
}

TEST_CASE("gpu: Dropout has the CPU's masks, bit for bit, in odd sizes too") {
  for (const shape& s : {shape{3, 7}, shape{1, 1}, shape{2, 4, 5, 5}, shape{5, 1000}, shape{6}}) {
    one_layer net("type: 'Dropout' dropout_param { dropout_ratio: 0.4 }", {s}, {s});
    running_net cpu(net.h.n, {1, true}), gpu(net.h.n, {1, true}, strict_gpu(device_layout::nhwc));
    cpu.now.first_sample = gpu.now.first_sample = 0x1234567890;
    cpu.now.seed = gpu.now.seed = 0xFEDCBA9876543210;
    const auto x = noise(cpu.size(0), 1), dy = noise(cpu.size(0), 2);
    for (auto* r : {&cpu, &gpu}) {
      r->set("x0", x);
      r->forward();
      r->set_diff("y0", dy);
      r->backward();
    }
    CHECK(gpu.data("y0") == cpu.data("y0"));
    CHECK(gpu.diff("x0") == cpu.diff("x0"));
  }
  check_both_ways("type: 'Dropout'");
  check_both_ways("type: 'Dropout' dropout_param { dropout_ratio: 1 }");
  hand_net test_progress(::caffe::TEST);
  test_progress.input("x", blob_shape);
  test_progress.layer("name: 'd' type: 'Dropout' bottom: 'x' top: 'y'", {blob_shape});
  check_both(test_progress.n);
}

TEST_CASE("gpu: Scale, Bias and PReLU equal the CPU's along every axis, in place and not") {
  check_both_ways("type: 'Scale'", {{4}});
  check_both_ways("type: 'Scale' scale_param { bias_term: true }", {{4}, {4}});
  check_both_ways("type: 'Scale' scale_param { axis: 1 num_axes: 2 bias_term: true }",
                  {{4, 5}, {4, 5}});
  check_both_ways("type: 'Scale' scale_param { axis: 0 num_axes: 1 }", {{3}});
  check_both_ways("type: 'Scale' scale_param { num_axes: 0 }", {{}});
  check_both_ways("type: 'Bias'", {{4}});
  check_both_ways("type: 'PReLU'", {{4}});
  check_both_ways("type: 'PReLU' prelu_param { channel_shared: true }", {{}});
  check_both(
      one_layer("type: 'Scale' scale_param { axis: 0 }", {blob_shape, {3, 4}}, {blob_shape}).h.n);
  check_both(one_layer("type: 'Bias' bias_param { axis: 2 }", {blob_shape, {5}}, {blob_shape}).h.n);
}

TEST_CASE("gpu: BatchNorm equals the CPU's with statistics of the batch and with running ones") {
  for (const bool global : {false, true}) {
    const std::string text =
        std::string("type: 'BatchNorm' batch_norm_param { use_global_stats: ") +
        (global ? "true" : "false") + " }";
    CAPTURE(global);
    for (const shape& s : {blob_shape, shape{6, 3}, shape{1, 2, 1, 1}}) {
      hand_net h = one_layer(text, {s}, {s}, {{s[1]}, {s[1]}, {1}}).h;
      net_layer& l = h.n.layers.back();
      l.learn.assign(3, false);
      for (const std::size_t p : l.parameters) {
        h.n.parameters[p].average_momentum = 0.999f;
        h.n.parameters[p].lr_mult = 0;
      }
      check_both(h.n, {}, [](running_net& r) {  // no variance is below 0
        for (float& v : r.parameters[1]) v = std::abs(v);
        r.parameters[2] = {3};
        r.touch();
      });
    }
  }
}

TEST_CASE("gpu: a residual block with BatchNorm, Scale and ReLU in place equals the CPU's") {
  const shape s{2, 3, 6, 6};
  hand_net h;
  h.all_diffs = true;
  h.input("x", s);
  h.layer("name: 'split' type: 'Split' bottom: 'x' top: 'a' top: 'b'", {s, s});
  h.layer(
      "name: 'conv' type: 'Convolution' bottom: 'a' top: 'c' convolution_param { num_output: 3 "
      "kernel_size: 3 "
      "pad: 1 bias_term: false }",
      {s}, {{3, 3, 3, 3}});
  h.layer("name: 'bn' type: 'BatchNorm' bottom: 'c' top: 'c'", {}, {{3}, {3}, {1}});
  for (const std::size_t p : h.n.layers.back().parameters)
    h.n.parameters[p].average_momentum = 0.999f;
  h.n.layers.back().learn.assign(3, false);
  h.layer("name: 'scale' type: 'Scale' bottom: 'c' top: 'c' scale_param { bias_term: true }", {},
          {{3}, {3}});
  h.layer("name: 'relu' type: 'ReLU' bottom: 'c' top: 'c'", {});
  h.layer("name: 'sum' type: 'Eltwise' bottom: 'b' bottom: 'c' top: 'y'", {s});
  check_both(h.n);
}

TEST_CASE("gpu: however many tops a Split has, all their gradients count") {
  const shape s{2, 3, 5, 3};
  for (int tops = 2; tops <= 8; ++tops) {
    CAPTURE(tops);
    hand_net h;
    h.all_diffs = true;
    h.input("x", s);
    std::string split, sum, factors;
    for (int t = 0; t < tops; ++t) {
      const std::string name = "t" + std::to_string(t);
      split += " top: '" + name + "'";
      sum += " bottom: '" + name + "'";
      factors += " coeff: " + std::to_string(t + 1);
    }
    h.layer("name: 'split' type: 'Split' bottom: 'x'" + split,
            std::vector<shape>(static_cast<std::size_t>(tops), s));
    h.layer("name: 'sum' type: 'Eltwise'" + sum + " top: 'y' eltwise_param {" + factors + " }",
            {s});
    check_both(h.n);
  }
}
