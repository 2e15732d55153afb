// Values of two bytes between layers: how they round, and that nets of them have the same bits from run to run.
#include "cpu/bfloat16.hpp"

#include "cpu/channels.hpp"
#include "tests/cpu/hand_net.hpp"

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>

using namespace poseidon;
using namespace poseidon::test;
using cpu::bfloat16;
using cpu::layout;

namespace {

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
std::uint16_t upper(float v) {
  return bfloat16(v).bits;
}

}  // namespace

TEST_CASE("bfloat16: rounds to the nearest, of two equally near ones to the even one") {
  CHECK(upper(1.0f) == 0x3f80);
  CHECK(upper(from_bits(0x3f807fff)) == 0x3f80);
  CHECK(upper(from_bits(0x3f808000)) == 0x3f80);  // halfway: 0x3f80 is even
  CHECK(upper(from_bits(0x3f808001)) == 0x3f81);
  CHECK(upper(from_bits(0x3f818000)) == 0x3f82);  // halfway: 0x3f81 is odd
  CHECK(upper(-0.0f) == 0x8000);
  CHECK(upper(from_bits(0x7f7fffff)) == 0x7f80);  // the largest float is nearer to infinity
  CHECK(upper(std::numeric_limits<float>::infinity()) == 0x7f80);
  CHECK(upper(-std::numeric_limits<float>::infinity()) == 0xff80);
  for (const std::uint32_t nan : {0x7fffffffu, 0x7f800001u, 0xffffffffu, 0xff800001u})
    CHECK(std::isnan(float(bfloat16(from_bits(nan)))));
}

TEST_CASE("bfloat16: vectors round as single values do") {
  if (!multiplies_bf16()) return;  // there is no such instruction
  using cpu::sixteen;
  std::uint32_t bits = 1;
  for (int round = 0; round < 20000; ++round) {
    float from[16];
    for (float& v : from) v = from_bits(bits = bits * 1664525u + 1013904223u);
    bfloat16 to[16];
    cpu::store(to, cpu::load<sixteen>(from));
    float back[16];
    cpu::store(back, cpu::load<sixteen>(to));
    for (int i = 0; i < 16; ++i) {
      CAPTURE(std::bit_cast<std::uint32_t>(from[i]));
      REQUIRE(to[i].bits == upper(from[i]));
      REQUIRE(std::bit_cast<std::uint32_t>(back[i]) == std::uint32_t{to[i].bits} << 16);
    }
  }
}

TEST_CASE("bfloat16: every way between layouts rounds once, and padding is zero") {
  if (!multiplies_bf16()) return;
  const shape s{2, 19, 3, 5};
  const auto values = noise(2 * 19 * 3 * 5, 1);
  const auto room = [&](layout form) {
    return std::vector<float>(cpu::floats_of(cpu::stored_size(s, form), form), 77.0f);
  };
  for (const layout first : {layout::plain_bf16, layout::c16_bf16, layout::pixels_bf16}) {
    for (const layout second : {layout::plain, layout::c8, layout::c16, layout::plain_bf16,
                                layout::c16_bf16, layout::pixels_bf16}) {
      auto a = room(first), b = room(second), c = room(layout::plain);
      cpu::relayout(s, layout::plain, values.data(), first, a.data());
      cpu::relayout(s, first, a.data(), second, b.data());
      cpu::relayout(s, second, b.data(), layout::plain, c.data());
      for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(c[i] == float(bfloat16(values[i])));
      if (second != layout::c16_bf16) continue;
      // The second block has 3 channels of 16.
      const auto* last = cpu::as<bfloat16>(b.data()) + 16 * 3 * 5;
      for (std::size_t i = 0; i < 3 * 5; ++i)
        for (std::size_t k = 3; k < 16; ++k) REQUIRE(last[16 * i + k].bits == 0);
    }
  }
}

namespace {

/// A convolution, what follows it in place, pooling and a classifier.
hand_net small_net() {
  hand_net h;
  h.input("data", {4, 3, 12, 12});
  h.input("label", {4});
  h.layer(
      "name: 'a' type: 'Convolution' bottom: 'data' top: 'a' convolution_param { num_output: 20 "
      "kernel_size: 3 pad: 1 }",
      {{4, 20, 12, 12}}, {{20, 3, 3, 3}, {20}});
  h.layer("name: 'r' type: 'ReLU' bottom: 'a' top: 'a'", {{4, 20, 12, 12}});
  h.layer(
      "name: 'p' type: 'Pooling' bottom: 'a' top: 'p' pooling_param { pool: MAX kernel_size: 2 "
      "stride: 2 }",
      {{4, 20, 6, 6}});
  h.layer(
      "name: 'b' type: 'Convolution' bottom: 'p' top: 'b' convolution_param { num_output: 32 "
      "kernel_size: 1 }",
      {{4, 32, 6, 6}}, {{32, 20, 1, 1}, {32}});
  h.layer(
      "name: 'ip' type: 'InnerProduct' bottom: 'b' top: 'ip' inner_product_param { num_output: 5 }",
      {{4, 5}}, {{5, 32 * 36}, {5}});
  h.layer("name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'l'", {{}});
  return h;
}

struct result {
  std::vector<std::vector<float>> gradients;
  float loss;
};

result one_pass(const net& n, cpu_math math) {
  running_net r(n, {}, make_cpu_device(math));
  r.set("data", noise(4 * 3 * 12 * 12, 3));
  r.set("label", {0, 1, 2, 3});
  r.forward();
  r.backward();
  result out;
  for (std::size_t p = 0; p < n.parameters.size(); ++p) out.gradients.push_back(r.gradient(p));
  out.loss = r.data("l").at(0);
  return out;
}

}  // namespace

TEST_CASE(
    "bfloat16: a net's gradients are near those of float32, and have the same bits in every run") {
  const hand_net h = small_net();
  if (!multiplies_bf16()) {
    CHECK_THROWS_WITH(
        make_cpu_device(cpu_math::bf16),
        doctest::Contains("this processor has no instructions that multiply bfloat16"));
    return;
  }
  const auto exact = one_pass(h.n, cpu_math::fp32), rounded = one_pass(h.n, cpu_math::bf16),
             again = one_pass(h.n, cpu_math::bf16);
  CHECK(rounded.loss == doctest::Approx(exact.loss).epsilon(0.02));
  CHECK(rounded.loss != exact.loss);  // else nothing was rounded
  for (std::size_t p = 0; p < h.n.parameters.size(); ++p) {
    CAPTURE(h.n.parameters[p].name);
    CHECK(distance(rounded.gradients[p], exact.gradients[p]) < 0.1);
    CHECK(rounded.gradients[p] == again.gradients[p]);
  }
}

namespace {

/// The same x and diff of y through both.
void go_through(running_net& exact, running_net& rounded) {
  const auto x = noise(exact.size(0), 1), dy = noise(exact.size(1), 2);
  for (running_net* r : {&exact, &rounded}) {
    r->set("x", x);
    r->forward();
    r->set_diff("y", dy);
    r->backward();
  }
}

}  // namespace

TEST_CASE("bfloat16: convolutions of all kinds of shapes are near those of float32") {
  if (!multiplies_bf16()) return;
  std::mt19937 random(20261130);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  for (int walk = 0; walk < 80; ++walk) {
    const int in_group = one_of({1, 3, 16, 24, 32}), out_group = one_of({1, 5, 16, 32, 40});
    const int groups = one_of({1, 1, 1, 2, 16}), kernel = one_of({1, 2, 3, 5});
    const int stride = one_of({1, 1, 2}), dilation = one_of({1, 1, 2}), pad = one_of({0, 1, 2});
    const int in = in_group * groups, out = out_group * groups, side = 11;
    const int reach = dilation * (kernel - 1) + 1, made = (side + 2 * pad - reach) / stride + 1;
    const std::string words =
        "num_output: " + std::to_string(out) + " kernel_size: " + std::to_string(kernel) +
        " stride: " + std::to_string(stride) + " pad: " + std::to_string(pad) +
        " dilation: " + std::to_string(dilation) + " group: " + std::to_string(groups);
    CAPTURE(in);
    CAPTURE(words);
    hand_net h;
    h.all_diffs = true;
    h.input("x", {3, in, side, side});
    h.layer(
        "name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { " + words + " }",
        {{3, out, made, made}}, {{out, in_group, kernel, kernel}, {out}});
    running_net exact(h.n, {1, true}), rounded(h.n, {1, true}, make_cpu_device(cpu_math::bf16));
    go_through(exact, rounded);
    CHECK(distance(rounded.data("y"), exact.data("y")) < 0.01);
    CHECK(distance(rounded.diff("x"), exact.diff("x")) < 0.01);
    // A bias's gradient is a sum whose summands cancel.
    for (const std::size_t p : {0u, 1u})
      CHECK(distance(rounded.gradient(p), exact.gradient(p)) < 0.03);
  }
}

namespace {

/// Convolutions with and without whole blocks of channels, and behind them all layers that know pixels.
hand_net net_of_pixels(int channels, const std::string& pool, bool cuts_a_block) {
  const auto n = std::to_string(channels);
  const int half = cuts_a_block ? channels / 2 + 3 : 16, rest = channels - half;
  hand_net h;
  h.input("data", {2, 5, 10, 9});
  h.input("label", {2});
  const shape image{2, channels, 10, 9}, pooled{2, channels, 5, 5}, one{channels};
  h.layer("name: 'a' type: 'Convolution' bottom: 'data' top: 'a' convolution_param { num_output: " +
              n + " kernel_size: 3 pad: 1 bias_term: false }",
          {image}, {{channels, 5, 3, 3}});
  h.layer("name: 'bn' type: 'BatchNorm' bottom: 'a' top: 'bn'", {image}, {one, one, {1}});
  h.layer("name: 's' type: 'Scale' bottom: 'bn' top: 's' scale_param { bias_term: true }", {image},
          {one, one});
  h.layer("name: 'r' type: 'ReLU' bottom: 's' top: 's'", {image});
  h.layer("name: 'sp' type: 'Split' bottom: 's' top: 's1' top: 's2'", {image, image});
  h.layer("name: 'b' type: 'Convolution' bottom: 's1' top: 'b' convolution_param { num_output: " +
              n + " kernel_size: 1 }",
          {image}, {{channels, channels, 1, 1}, one});
  h.layer("name: 'e' type: 'Eltwise' bottom: 'b' bottom: 's2' top: 'e'", {image});
  h.layer("name: 'p' type: 'Pooling' bottom: 'e' top: 'p' pooling_param { " + pool + " }",
          {pooled});
  h.layer("name: 'n' type: 'LRN' bottom: 'p' top: 'n' lrn_param { local_size: 5 alpha: 0.1 }",
          {pooled});
  h.layer("name: 'c' type: 'Slice' bottom: 'n' top: 'c1' top: 'c2' slice_param { slice_point: " +
              std::to_string(half) + " }",
          {{2, half, 5, 5}, {2, rest, 5, 5}});
  h.layer("name: 'j' type: 'Concat' bottom: 'c2' bottom: 'c1' top: 'j'", {pooled});
  h.layer(
      "name: 'd' type: 'Convolution' bottom: 'j' top: 'd' convolution_param { num_output: 16 "
      "kernel_size: 1 stride: 2 }",
      {{2, 16, 3, 3}}, {{16, channels, 1, 1}, {16}});
  h.layer(
      "name: 'ip' type: 'InnerProduct' bottom: 'd' top: 'ip' inner_product_param { num_output: 3 }",
      {{2, 3}}, {{3, 144}, {3}});
  h.layer("name: 'l' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'l'", {{}});
  return h;
}

}  // namespace

TEST_CASE("bfloat16: all layers behind convolutions are near those of float32, whatever is cut") {
  if (!multiplies_bf16()) return;
  for (const int channels : {16, 20, 48, 64})
    for (const char* pool :
         {"pool: MAX kernel_size: 3 stride: 2", "pool: AVE kernel_size: 2 stride: 2"})
      for (const bool cuts : {false, true}) {
        if (channels == 16 && !cuts) continue;  // a slice would be empty
        CAPTURE(channels);
        CAPTURE(pool);
        CAPTURE(cuts);
        const hand_net h = net_of_pixels(channels, pool, cuts);
        std::vector<std::vector<float>> of_fp32, of_bf16;
        for (const auto math : {cpu_math::fp32, cpu_math::bf16}) {
          running_net r(h.n, {}, make_cpu_device(math));
          r.set("data", noise(2 * 5 * 90, 3));
          r.set("label", {0, 2});
          r.forward();
          r.backward();
          auto& to = math == cpu_math::fp32 ? of_fp32 : of_bf16;
          to.push_back(r.data("l"));
          for (std::size_t p = 0; p < h.n.parameters.size(); ++p) to.push_back(r.gradient(p));
        }
        for (std::size_t i = 0; i < of_fp32.size(); ++i) {
          CAPTURE(i);
          CHECK(distance(of_bf16[i], of_fp32[i]) < 0.25);  // maxima and ReLUs may choose otherwise
        }
      }
}

TEST_CASE("bfloat16: inner products of many rows are near those of float32") {
  if (!multiplies_bf16()) return;
  for (const int rows : {63, 64, 130})
    for (const char* words : {"", "bias_term: false", "transpose: true"})
      for (const bool relu : {false, true}) {
        CAPTURE(rows);
        CAPTURE(words);
        CAPTURE(relu);
        const bool has_bias = std::string(words) != "bias_term: false";
        const bool transposed = std::string(words) == "transpose: true";
        hand_net h;
        h.all_diffs = true;
        h.input("x", {rows, 50});
        std::vector<shape> parameters{transposed ? shape{50, 21} : shape{21, 50}};
        if (has_bias) parameters.push_back({21});
        h.layer(std::string("name: 'i' type: 'InnerProduct' bottom: 'x' top: 'y' "
                            "inner_product_param { num_output: 21 ") +
                    words + " }",
                {{rows, 21}}, parameters);
        if (relu) h.layer("name: 'r' type: 'ReLU' bottom: 'y' top: 'y'", {{rows, 21}});
        running_net exact(h.n, {}), rounded(h.n, {}, make_cpu_device(cpu_math::bf16));
        go_through(exact, rounded);
        CHECK(distance(rounded.data("y"), exact.data("y")) < 0.01);
        // What rounding moves across zero the ReLU lets through, or not any more.
        const double most = relu ? 0.15 : 0.01;
        CHECK(distance(rounded.diff("x"), exact.diff("x")) < most);
        for (std::size_t p = 0; p < h.n.parameters.size(); ++p)
          CHECK(distance(rounded.gradient(p), exact.gradient(p)) < most);
      }
}

TEST_CASE("bfloat16: the device says what it multiplies, to people and to other nodes") {
  if (!multiplies_bf16()) return;
  const auto rounding = make_cpu_device(cpu_math::bf16);
  CHECK(rounding->describe().find(", bfloat16") != std::string::npos);
  CHECK(make_cpu_device()->traits() != rounding->traits());
}
