#include "models/device/block_format.hpp"

#include "models/device/wire_format.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace poseidon;

namespace {

constexpr auto int8 = wire_format::int8, int4 = wire_format::int4;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float largest_float = std::numeric_limits<float>::max();

int top(wire_format f) {
  return f == int8 ? 127 : 7;
}

std::vector<std::byte> encoded(wire_format f, std::span<const float> values) {
  std::vector<std::byte> bytes(wire_bytes(f, values.size()));
  encode(f, values, bytes);
  return bytes;
}

std::vector<float> decoded(wire_format f, std::span<const std::byte> bytes, std::size_t n) {
  std::vector<float> values(n);
  decode(f, bytes, values);
  return values;
}

std::vector<float> rounded(wire_format f, std::span<const float> values) {
  return decoded(f, encoded(f, values), values.size());
}

float step_of(std::span<const std::byte> block) {
  std::uint16_t word = 0;
  std::memcpy(&word, block.data(), 2);
  return std::bit_cast<float>(std::uint32_t{word} << 16);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Gradients of every size, and now and then a value that is special.
std::vector<float> some_values(std::mt19937& random, std::size_t n) {
  const float special[] = {0.0f,
                           -0.0f,
                           inf,
                           -inf,
                           std::nanf(""),
                           largest_float,
                           -largest_float,
                           std::numeric_limits<float>::min(),
                           std::numeric_limits<float>::denorm_min(),
                           -0x1p-140f};
  std::uniform_int_distribution<int> exponent(-140, 127), rare(0, 3), place(0, 999);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n;) {
    const auto scale = std::ldexp(1.0f, exponent(random));
    const bool with_special = rare(random) == 0;
    for (std::size_t in_block = 0; in_block < block_values && i < n; ++in_block, ++i) {
      out[i] = normal(random) * scale;
      if (with_special && place(random) < 10)
        out[i] = special[static_cast<std::size_t>(place(random)) % std::size(special)];
    }
  }
  return out;
}

}  // namespace

TEST_CASE("block_format: bytes of n values are those of their blocks") {
  CHECK(wire_bytes(int8, 0) == 0);
  CHECK(wire_bytes(int8, 1) == 3);
  CHECK(wire_bytes(int8, 256) == 258);
  CHECK(wire_bytes(int8, 257) == 258 + 3);
  CHECK(wire_bytes(int4, 0) == 0);
  CHECK(wire_bytes(int4, 1) == 3);
  CHECK(wire_bytes(int4, 2) == 3);
  CHECK(wire_bytes(int4, 255) == 130);
  CHECK(wire_bytes(int4, 256) == 130);
  CHECK(wire_bytes(int4, 259) == 130 + 4);
  CHECK(wire_bytes(wire_format::float32, 259) == 4 * 259);
  CHECK(wire_bytes(wire_format::bfloat16, 259) == 2 * 259);
}

TEST_CASE("block_format: a block's bytes are its step and its integers") {
  const std::vector<float> values{127, -127, 2.5f, 3.5f, -0.5f};  // ties go to the even integer
  const auto bytes = encoded(int8, values);
  CHECK(step_of(bytes) == 1);
  CHECK(decoded(int8, bytes, 5) == std::vector<float>{127, -127, 2, 4, 0});
  CHECK(std::to_integer<int>(bytes[2]) == 127);
  CHECK(std::to_integer<int>(bytes[3]) == 129);

  const auto halves = encoded(int4, std::vector<float>{14, -14, 5, 7, -1});
  CHECK(step_of(halves) == 2);
  CHECK(halves.size() == 5);
  CHECK(std::to_integer<int>(halves[2]) == 0x97);  // 7, and -7 in the upper half
  CHECK(std::to_integer<int>(halves[3]) == 0x42);
  CHECK(std::to_integer<int>(halves[4]) == 0);
  CHECK(decoded(int4, halves, 5) == std::vector<float>{14, -14, 4, 8, 0});
}

TEST_CASE("block_format: no value errs by more than half a step, the largest neither") {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  for (const auto f : {int8, int4})
    for (int trial = 0; trial < 2000; ++trial) {
      std::vector<float> values(1 + static_cast<std::size_t>(random() % block_values));
      for (auto& v : values) v = std::ldexp(normal(random), trial % 200 - 100);
      double largest = 0;
      for (const float v : values) largest = std::max(largest, double{std::abs(v)});
      const auto bytes = encoded(f, values);
      const double step = step_of(bytes);
      REQUIRE(step >= largest / top(f) * (1 - 0x1p-23));
      REQUIRE(step <= largest / top(f) * (1 + 0x1p-7));
      const auto back = decoded(f, bytes, values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        REQUIRE(std::abs(double{back[i]} - values[i]) <= step * (0.5 + 0x1p-16));
        REQUIRE(double{back[i]} == std::nearbyint(double{values[i]} / step) * step);
      }
    }
}

TEST_CASE("block_format: the vector path gives the bits of the portable one, in every place") {
  std::mt19937 random(4);
  const auto fast = fastest_block_codec(), plain = portable_block_codec();
  for (const auto f : {int8, int4})
    for (const std::size_t n : {1u, 2u, 7u, 31u, 32u, 33u, 95u, 255u, 256u, 257u, 5000u})
      for (int trial = 0; trial < 40; ++trial) {
        CAPTURE(n);
        const auto a = some_values(random, n), b = some_values(random, n);
        for (const auto of : {block_source::first, block_source::sum, block_source::difference}) {
          std::vector<std::byte> one(wire_bytes(f, n)), other(one.size());
          std::vector<float> left(n), left_plain(n);
          fast.encode(f, of, a.data(), b.data(), n, one.data(), left.data());
          plain.encode(f, of, a.data(), b.data(), n, other.data(), left_plain.data());
          REQUIRE(one == other);
          REQUIRE(same_bits(left, left_plain));
          auto in_place = b;  // a residual is read and written
          fast.encode(f, of, a.data(), in_place.data(), n, other.data(), in_place.data());
          REQUIRE(one == other);
          REQUIRE(same_bits(in_place, left));
          fast.encode(f, of, a.data(), b.data(), n, other.data(), nullptr);
          REQUIRE(one == other);
        }
        // Any bytes are some values: those of a peer as well.
        std::vector<std::byte> bytes(wire_bytes(f, n));
        for (auto& byte : bytes) byte = static_cast<std::byte>(random());
        std::vector<float> one(n), other(n), sums(n);
        fast.decode(f, bytes.data(), n, nullptr, one.data());
        plain.decode(f, bytes.data(), n, nullptr, other.data());
        REQUIRE(same_bits(one, other));
        std::vector<float> finite(n);
        for (std::size_t i = 0; i < n; ++i) finite[i] = std::isfinite(a[i]) ? a[i] : 1.0f;
        fast.decode(f, bytes.data(), n, finite.data(), sums.data());
        plain.decode(f, bytes.data(), n, finite.data(), other.data());
        REQUIRE(same_bits(sums, other));
        fast.decode(f, bytes.data(), n, finite.data(), finite.data());
        REQUIRE(same_bits(sums, finite));
      }
}

TEST_CASE("block_format: zeros and what is too small for a step are zeros, and are left") {
  for (const auto f : {int8, int4}) {
    const std::vector<float> small{0.0f, -0.0f, 0x1p-149f, -0x1p-127f, 0x1p-126f};
    CHECK(step_of(encoded(f, small)) == 0);
    CHECK(same_bits(rounded(f, small), std::vector<float>(5, 0.0f)));
    std::vector<float> residual(5);
    std::vector<std::byte> bytes(wire_bytes(f, 5));
    encode_with_feedback(f, small, residual, bytes);
    CHECK(residual == small);
    for (int clock = 0; clock < 200; ++clock) encode_with_feedback(f, small, residual, bytes);
    CHECK(rounded(f, std::vector<float>(3, 200 * 0x1p-126f))[0] > 0);
  }
}

TEST_CASE("block_format: one value that is not finite makes its block NaN, and leaves nothing") {
  for (const auto f : {int8, int4})
    for (const float bad : {inf, -inf, std::nanf("")}) {
      std::vector<float> values(3 * block_values, 0.25f), residual(values.size(), 0.125f);
      values[block_values + 100] = bad;
      std::vector<std::byte> bytes(wire_bytes(f, values.size()));
      encode_with_feedback(f, values, residual, bytes);
      const auto back = decoded(f, bytes, values.size());
      const auto all_nan = [&](std::size_t block) {
        const auto from = back.begin() + static_cast<std::ptrdiff_t>(block * block_values);
        return std::all_of(from, from + block_values, [](float v) { return std::isnan(v); });
      };
      CHECK(all_nan(1));
      CHECK(back[block_values - 1] == doctest::Approx(0.375).epsilon(0.01));
      CHECK(back[2 * block_values] == doctest::Approx(0.375).epsilon(0.01));
      CHECK(residual[block_values] == 0);
      CHECK(residual[block_values + 100] == 0);
      CHECK(residual[block_values - 1] == 0.375f - back[block_values - 1]);
    }
}

TEST_CASE("block_format: what is finite stays finite, and what is cut off comes later") {
  for (const auto f : {int8, int4}) {
    const std::vector<float> values{largest_float, -largest_float, 0.9f * largest_float};
    std::vector<float> residual(3);
    std::vector<std::byte> bytes(wire_bytes(f, 3));
    encode_with_feedback(f, values, residual, bytes);
    const auto back = decoded(f, bytes, 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(std::isfinite(back[i]));
      CHECK(std::abs(back[i]) >= 0.9f * std::abs(values[i]));
      CHECK(double{back[i]} + residual[i] == values[i]);
    }
  }
}

TEST_CASE("block_format: a piece that begins at a block has the bytes of that place of the whole") {
  std::mt19937 random(5);
  const auto values = some_values(random, 5 * block_values + 77);
  for (const auto f : {int8, int4}) {
    const auto whole = encoded(f, values);
    for (const std::size_t at : {std::size_t{0}, block_values, 3 * block_values}) {
      const auto piece = std::span(values).subspan(at);
      const auto bytes = encoded(f, piece);
      CHECK(std::equal(bytes.begin(), bytes.end(),
                       whole.begin() + static_cast<std::ptrdiff_t>(wire_bytes(f, at))));
      CHECK(whole.size() == wire_bytes(f, at) + bytes.size());
    }
  }
}

TEST_CASE("block_format: sizes that do not fit are refused") {
  const std::vector<float> values(300);
  std::vector<std::byte> bytes(300);
  CHECK_THROWS_WITH_AS(encode(int8, values, bytes),
                       "300 bytes of int8 and arrays of 300 and 300 values do not fit each other",
                       std::invalid_argument);
  encode(int4, {}, {});
}

TEST_CASE("block_format: small parameters stay float32") {
  CHECK(format_for(int8, 4095) == wire_format::float32);
  CHECK(format_for(int4, 4096) == int4);
  CHECK(format_for(wire_format::bfloat16, 1) == wire_format::bfloat16);
  CHECK(wire_format_list("and") == "float32, float16, bfloat16, int8 and int4");
}
