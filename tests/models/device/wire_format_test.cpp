#include "models/device/wire_format.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

using namespace poseidon;

namespace {

constexpr auto half = wire_format::float16, brain = wire_format::bfloat16, int8 = wire_format::int8,
               int4 = wire_format::int4;
constexpr float inf = std::numeric_limits<float>::infinity();

float of_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

std::uint16_t encoded(wire_format f, float v) {
  std::uint16_t word = 0;
  encode(f, {&v, 1}, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

float decoded(wire_format f, std::uint16_t word) {
  float v = 0;
  decode(f, std::as_bytes(std::span(&word, 1)), {&v, 1});
  return v;
}

float rounded(wire_format f, float v) {
  return decoded(f, encoded(f, v));
}

/// Values that every format must round correctly: middles between two neighbours, both sides of them, and the limits.
std::vector<float> edge_cases() {
  std::vector<float> v;
  for (std::uint32_t high = 0; high < 0x10000; ++high)
    for (const std::uint32_t low : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u,
                                    0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      v.push_back(of_bits(high << 16 | low));
  return v;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

TEST_CASE("wire_format: values of a float16 are those of its definition") {
  const std::pair<float, unsigned> known[] = {
      {0.0f, 0},       {-0.0f, 0x8000},          {1.0f, 0x3c00},
      {-2.0f, 0xc000}, {65504.0f, 0x7bff},       {0x1p-14f, 0x0400},
      {0x1p-24f, 1},   {0x1.ff8p-15f, 0x03ff},   {inf, 0x7c00},
      {-inf, 0xfc00},  {0.333251953125f, 0x3555}};
  for (const auto& [value, word] : known) {
    CHECK(encoded(half, value) == word);
    CHECK(decoded(half, static_cast<std::uint16_t>(word)) == value);
  }
}

TEST_CASE("wire_format: rounding is to the nearest, ties to even") {
  CHECK(rounded(half, 2049) == 2048);
  CHECK(rounded(half, 2051) == 2052);
  CHECK(rounded(half, of_bits(0x45001001)) == 2050);  // above the middle of 2048 and 2050
  CHECK(rounded(half, 0x1p-25f) == 0);
  CHECK(rounded(half, 0x1.8p-24f) == 0x1p-23f);
  CHECK(rounded(half, 0x1.000002p-25f) == 0x1p-24f);
  CHECK(rounded(half, 0x1.ffep-15f) == 0x1p-14f);  // out of the denormals
  CHECK(rounded(brain, 257) == 256);
  CHECK(rounded(brain, 259) == 260);
  CHECK(rounded(brain, of_bits(0x43808001)) == 258);
}

TEST_CASE("wire_format: what is finite stays finite, what is not stays that") {
  const float largest = std::numeric_limits<float>::max();
  for (const float v : {65505.0f, 65520.0f, 1e6f, largest}) {
    CHECK(rounded(half, v) == 65504);
    CHECK(rounded(half, -v) == -65504);
  }
  CHECK(rounded(brain, largest) == of_bits(0x7f7f0000));
  CHECK(rounded(brain, -largest) == of_bits(0xff7f0000));
  for (const auto f : {half, brain}) {
    CHECK(rounded(f, inf) == inf);
    CHECK(rounded(f, -inf) == -inf);
    for (const std::uint32_t nan : {0x7fc00000u, 0x7f800001u, 0xffffffffu})
      CHECK(std::isnan(rounded(f, of_bits(nan))));
  }
}

TEST_CASE("wire_format: a conversion as a program's makes what is too large infinite") {
  const auto cast = [](wire_format f, float v) {
    std::uint16_t word = 0;
    encode_cast(f, {&v, 1}, std::as_writable_bytes(std::span(&word, 1)));
    return decoded(f, word);
  };
  const float largest = std::numeric_limits<float>::max();
  for (const float v : {65520.0f, 1e6f, largest, inf}) {
    CHECK(cast(half, v) == inf);
    CHECK(cast(half, -v) == -inf);
  }
  CHECK(cast(half, 65519) == 65504);  // nearer to the largest than to what would come after it
  CHECK(cast(brain, largest) == inf);
  CHECK(cast(brain, of_bits(0x7f7f7fff)) == of_bits(0x7f7f0000));
  for (const auto f : {half, brain}) {
    CHECK(std::isnan(cast(f, of_bits(0x7f800001))));
    for (const float v : {0.1f, -0.0f, 2049.0f, 0x1p-25f})
      CHECK(std::bit_cast<std::uint32_t>(cast(f, v)) ==
            std::bit_cast<std::uint32_t>(rounded(f, v)));
  }
}

TEST_CASE("wire_format: every one of the 65536 words is a value that comes back, on both paths") {
  std::vector<std::uint16_t> words(65536), back(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  for (const auto f : {half, brain}) {
    std::vector<float> values(words.size()), plain(words.size());
    decode(f, std::as_bytes(std::span(words)), values);
    portable::decode(f, std::as_bytes(std::span(words)), plain);
    CHECK(same_bits(values, plain));
    encode(f, values, std::as_writable_bytes(std::span(back)));
    std::size_t different = 0;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (back[i] != words[i] && !std::isnan(values[i])) ++different;
    CHECK(different == 0);
  }
}

TEST_CASE("wire_format: the vector path gives the bits of the portable one, in every place") {
  auto values = edge_cases();
  for (const auto f : {half, brain}) {
    for (const std::size_t skipped : {0u, 3u}) {
      const auto part = std::span<const float>(values).subspan(skipped);
      std::vector<std::byte> a(2 * part.size()), b(2 * part.size());
      encode(f, part, a);
      portable::encode(f, part, b);
      CHECK(a == b);
      encode_cast(f, part, a);
      portable::encode_cast(f, part, b);
      CHECK(a == b);
    }
  }
}

TEST_CASE("wire_format: rounding a value never errs by more than half a step of the format") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (int i = 0; i < 100'000; ++i) {
    const float v = normal(random);
    CHECK(std::abs(double{rounded(half, v)} - v) <= std::max(std::abs(v) * 0x1p-11, 0x1p-25));
    CHECK(std::abs(double{rounded(brain, v)} - v) <= std::abs(v) * 0x1p-8);
  }
}

TEST_CASE("wire_format: with feedback the sum of what is sent is the sum of what there was") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 1e-3f);
  constexpr std::size_t n = 3000, clocks = 1000;
  for (const auto f : {half, brain, int8, int4}) {
    std::vector<float> residual(n), gradient(n), sent(n);
    std::vector<double> there(n), arrived(n);
    std::vector<std::byte> bytes(wire_bytes(f, n));
    for (std::size_t c = 0; c < clocks; ++c) {
      for (std::size_t i = 0; i < n; ++i) {
        // so that float32 adds exactly
        gradient[i] = std::round(normal(random) * 0x1p30f) * 0x1p-30f;
        there[i] += gradient[i];
      }
      encode_with_feedback(f, gradient, residual, bytes);
      decode(f, bytes, sent);
      for (std::size_t i = 0; i < n; ++i) arrived[i] += sent[i];
    }
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i)
      worst = std::max(worst, std::abs(arrived[i] + residual[i] - there[i]));
    CHECK(worst <= 0x1p-30);  // one unit in the last place of these values
    // And the part that has not arrived is that of one clock, however many there were.
    double late = 0;
    for (const float r : residual) late = std::max(late, double{std::abs(r)});
    const double of_largest = f == half    ? 0x1p-11
                              : f == brain ? 0x1p-8
                              : f == int8  ? 0.5 / 127
                                           : 0.5 / 7;
    CHECK(late <= 1e-2 * of_largest);
  }
}

TEST_CASE("wire_format: what a float16 cannot hold comes in several clocks") {
  std::vector<float> residual{0, 0};
  std::vector<std::byte> bytes(4);
  std::vector<float> gradient{150'000, 0x1p-26f}, sent(2);
  double large = 0, small = 0;
  for (int clock = 0; clock < 4; ++clock) {
    encode_with_feedback(half, gradient, residual, bytes);
    decode(half, bytes, sent);
    large += sent[0], small += sent[1];
    gradient[0] = 0;
  }
  CHECK(large == doctest::Approx(150'000).epsilon(1e-3));
  CHECK(small == 0x1p-24);
}

TEST_CASE("wire_format: a value that is not finite is sent as it is and leaves no residual") {
  std::vector<float> residual{1, 1};
  std::vector<std::byte> bytes(4);
  for (const auto f : {half, brain}) {
    encode_with_feedback(f, std::vector<float>{inf, std::nanf("")}, residual, bytes);
    std::vector<float> sent(2);
    decode(f, bytes, sent);
    CHECK(sent[0] == inf);
    CHECK(std::isnan(sent[1]));
    CHECK(residual == std::vector<float>{0, 0});
  }
}

TEST_CASE("wire_format: steps lead two copies to the same values, the shard's own included") {
  for (const auto f : {half, brain, int8, int4}) {
    std::vector<float> exact(1500), near(1500), far(1500);
    std::vector<std::byte> bytes(wire_bytes(f, exact.size()));
    for (int clock = 0; clock < 20; ++clock) {
      for (std::size_t i = 0; i < exact.size(); ++i)
        exact[i] += 1e-3f * std::sin(static_cast<float>(i) + static_cast<float>(clock));
      encode_change(f, exact, near, bytes);
      add_decoded(f, bytes, near, near);
      add_decoded(f, bytes, far, far);
    }
    CHECK(same_bits(near, far));
    for (std::size_t i = 0; i < exact.size(); ++i)
      CHECK(std::abs(exact[i] - near[i]) < (f == int4 ? 2e-4f : 1e-3f * 0x1p-7f));
  }
}

TEST_CASE("wire_format: float32 is what it was, and sizes that do not fit are refused") {
  const std::vector<float> values{1.5f, -0.0f, inf};
  std::vector<std::byte> bytes(12);
  encode(wire_format::float32, values, bytes);
  std::vector<float> back(3);
  decode(wire_format::float32, bytes, back);
  CHECK(same_bits(values, back));
  CHECK_THROWS_WITH_AS(encode(half, values, bytes),
                       "12 bytes of float16 and arrays of 3 and 3 values do not fit each other",
                       std::invalid_argument);
  encode(half, {}, {});
}

TEST_CASE("wire_format: names") {
  for (const auto f : {wire_format::float32, half, brain, int8, int4})
    CHECK(wire_format_of(to_string(f)) == f);
  CHECK_FALSE(wire_format_of("fp16").has_value());
}
