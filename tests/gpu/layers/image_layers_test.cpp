// Convolution, Pooling and LRN against the CPU's.
#include "tests/gpu/layers/both_backends.hpp"

using namespace poseidon;
using namespace poseidon::test;

namespace {

struct convolution_case {
  std::string options;
  shape in, out, weights;
};

std::int64_t pooled(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  std::int64_t out = (in + 2 * pad - kernel + stride - 1) / stride + 1;
  if (pad > 0 && (out - 1) * stride >= in + pad) --out;
  return out;
}

}  // namespace

TEST_CASE(
    "gpu: a convolution and its gradients equal the CPU's, whatever its window, groups and axes") {
  const std::vector<convolution_case> cases{
      {"kernel_size: 1", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
      {"kernel_size: 5", {3, 1, 12, 12}, {3, 20, 8, 8}, {20, 1, 5, 5}},
      {"kernel_size: 3 pad: 1 group: 2", {2, 6, 7, 9}, {2, 4, 7, 9}, {4, 3, 3, 3}},
      {"kernel_size: 3 stride: 2 pad: 1", {2, 3, 8, 8}, {2, 5, 4, 4}, {5, 3, 3, 3}},
      {"kernel_size: 2 stride: 3", {2, 3, 9, 10}, {2, 4, 3, 3}, {4, 3, 2, 2}},
      {"kernel_size: 3 dilation: 2 pad: 2", {1, 2, 9, 9}, {1, 3, 9, 9}, {3, 2, 3, 3}},
      {"kernel_h: 1 kernel_w: 7 pad_h: 0 pad_w: 3", {2, 4, 5, 8}, {2, 3, 5, 8}, {3, 4, 1, 7}},
      {"kernel_size: 3 group: 6 pad: 1", {1, 6, 5, 5}, {1, 6, 5, 5}, {6, 1, 3, 3}},
      {"kernel_size: 3 pad: 1", {2, 3, 4, 5, 6}, {2, 2, 4, 5, 6}, {2, 3, 3, 3, 3}},
      {"kernel_size: 3 stride: 2", {2, 3, 9}, {2, 4, 4}, {4, 3, 3}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.options);
    const auto with_bias = [&](bool bias) {
      return "type: 'Convolution' convolution_param { num_output: " + std::to_string(c.out[1]) +
             " " + c.options + (bias ? "" : " bias_term: false") + " }";
    };
    check_both(one_layer(with_bias(true), {c.in}, {c.out}, {c.weights, {c.out[1]}}).h.n);
    check_both(one_layer(with_bias(false), {c.in}, {c.out}, {c.weights}).h.n);
  }
}

TEST_CASE("gpu: a convolution of several bottoms adds up its gradients") {
  check_both(one_layer("type: 'Convolution' convolution_param { num_output: 3 kernel_size: 3 }",
                       {{2, 2, 5, 5}, {2, 2, 5, 5}}, {{2, 3, 3, 3}, {2, 3, 3, 3}},
                       {{3, 2, 3, 3}, {3}})
                 .h.n);
}

TEST_CASE("gpu: a deconvolution equals the CPU's") {
  check_both(one_layer("type: 'Deconvolution' convolution_param { num_output: 3 kernel_size: 4 "
                       "stride: 2 pad: 1 }",
                       {{2, 2, 5, 4}}, {{2, 3, 10, 8}}, {{2, 3, 4, 4}, {3}})
                 .h.n);
  check_both(
      one_layer("type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 3 group: 2 }",
                {{1, 2, 3, 3}}, {{1, 4, 5, 5}}, {{2, 2, 3, 3}, {4}})
          .h.n);
}

TEST_CASE(
    "gpu: MAX and AVE pooling equal the CPU's, with windows that overlap, leave gaps and hang "
    "over") {
  struct pool_case {
    std::int64_t n, c, h, w, kernel, stride, pad;
  };
  const std::vector<pool_case> cases{
      {1, 1, 1, 1, 1, 1, 0},
      {2, 3, 6, 8, 2, 2, 0},
      {2, 8, 7, 7, 3, 2, 0},
      {1, 5, 12, 12, 3, 2, 1},
      {1, 4, 9, 5, 3, 3, 1},
      {2, 5, 6, 6, 4, 3, 2},
      {1, 3, 8, 8, 3, 1, 1},
      {1, 2, 4, 4, 2, 3, 0},
      {2, 3, 8, 8, 3, 2, 0},
      {1, 3, 6, 5, 7, 7, 0},
      // With this number of channels a thread takes several, where they lie side by side.
      {2, 16, 8, 7, 3, 1, 1},
      {1, 8, 12, 12, 3, 2, 1},
      {2, 24, 9, 5, 3, 3, 1},
      {1, 8, 4, 4, 2, 3, 0}};
  for (const std::string how : {"MAX", "AVE"}) {
    for (const auto& c : cases) {
      CAPTURE(how);
      CAPTURE(c.kernel);
      CAPTURE(c.stride);
      CAPTURE(c.pad);
      check_both(one_layer("type: 'Pooling' pooling_param { pool: " + how + " kernel_size: " +
                               std::to_string(c.kernel) + " stride: " + std::to_string(c.stride) +
                               " pad: " + std::to_string(c.pad) + " }",
                           {{c.n, c.c, c.h, c.w}},
                           {{c.n, c.c, pooled(c.h, c.kernel, c.stride, c.pad),
                             pooled(c.w, c.kernel, c.stride, c.pad)}})
                     .h.n);
    }
    check_both(one_layer("type: 'Pooling' pooling_param { pool: " + how + " global_pooling: true }",
                         {{2, 3, 5, 4}}, {{2, 3, 1, 1}})
                   .h.n);
  }
}

TEST_CASE("gpu: STOCHASTIC pooling draws what the CPU draws") {
  for (const auto phase : {::caffe::TRAIN, ::caffe::TEST}) {
    one_layer net("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }",
                  {{3, 2, 7, 7}}, {{3, 2, 3, 3}}, {}, phase);
    if (phase == ::caffe::TEST) {
      net.h.n.layers.back().needs_backward = false;
      net.h.n.layers.back().propagate_down = {false};
    }
    auto x = noise(3 * 2 * 49, 3);
    for (float& v : x) v = std::abs(v);
    check_both(net.h.n, {{"x0", x}});
  }
}

TEST_CASE("gpu: LRN equals the CPU's across and within channels") {
  for (const std::string options :
       {"local_size: 5 alpha: 0.1 beta: 0.75", "local_size: 3 alpha: 1 beta: 0.5 k: 2",
        "local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL"}) {
    CAPTURE(options);
    check_both(
        one_layer("type: 'LRN' lrn_param { " + options + " }", {{2, 7, 5, 6}}, {{2, 7, 5, 6}}).h.n);
    check_both(
        one_layer("type: 'LRN' lrn_param { " + options + " }", {{1, 1, 3, 3}}, {{1, 1, 3, 3}}).h.n);
    for (const std::int64_t channels : {8, 24})  // of which a thread takes several
      check_both(one_layer("type: 'LRN' lrn_param { " + options + " }", {{2, channels, 3, 4}},
                           {{2, channels, 3, 4}})
                     .h.n);
  }
}

TEST_CASE("gpu: Im2col, SPP and LSTMUnit equal the CPU's") {
  check_both(
      one_layer("type: 'Im2col' convolution_param { kernel_size: 3 pad: 1 stride: 2 dilation: 2 }",
                {{2, 3, 7, 8}}, {{2, 27, 3, 3}})
          .h.n);
  for (const std::string how : {"MAX", "AVE"})
    check_both(one_layer("type: 'SPP' spp_param { pyramid_height: 3 pool: " + how + " }",
                         {{2, 3, 9, 8}}, {{2, 63}})
                   .h.n);
  hand_net lstm;
  lstm.all_diffs = true;
  lstm.input("c", {1, 4, 3});
  lstm.input("x", {1, 4, 12});
  lstm.input("label", {1, 4});
  lstm.layer(
      "name: 'unit' type: 'LSTMUnit' bottom: 'c' bottom: 'x' bottom: 'label' top: 'c1' top: 'h1'",
      {{1, 4, 3}, {1, 4, 3}});
  check_both(lstm.n, {{"label", {0, 1, 1, 0}}});
}
