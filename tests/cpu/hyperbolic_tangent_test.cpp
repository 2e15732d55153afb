#include "models/net/hyperbolic_tangent.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

using namespace poseidon;

namespace {

/// In units of the last place of the exact value.
double error_at(float x) {
  const double exact = std::tanh(double{x});
  int exponent = 0;
  (void)std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::abs(exact) == 1 ? -24 : exponent - 24);
  return std::abs(double{hyperbolic_tangent(x)} - exact) / unit;
}

}  // namespace

TEST_CASE("hyperbolic_tangent: within 1.4 units in the last place of every value") {
  double worst = 0;
  constexpr std::uint32_t least = 0x00800000u, infinity = 0x7f800000u;
  for (std::uint32_t bits = least; bits < infinity; bits += 1009) {
    const auto x = std::bit_cast<float>(bits);
    worst = std::max(worst, error_at(x));
    CHECK(hyperbolic_tangent(-x) == -hyperbolic_tangent(x));
  }
  CHECK(worst < 1.4);
}

TEST_CASE("hyperbolic_tangent: it never leaves -1 to 1, and rises where it changes its formula") {
  float before = 0;
  for (float x = 0.599f; x < 0.601f; x = std::nextafter(x, 1.0f)) {
    CHECK(hyperbolic_tangent(x) >= before * (1 - 2e-7f));
    before = hyperbolic_tangent(x);
  }
  for (const float x : {9.0f, 9.02f, 10.0f, 88.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    CHECK(hyperbolic_tangent(x) <= 1);
    CHECK(hyperbolic_tangent(x) > 0.9999999f);
  }
  CHECK(hyperbolic_tangent(std::numeric_limits<float>::infinity()) == 1);
  CHECK(std::signbit(hyperbolic_tangent(-0.0f)));
  CHECK(std::isnan(hyperbolic_tangent(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("hyperbolic_tangent: the same bits whatever compiled it") {
  std::uint32_t sum = 0;
  for (int i = 0; i < 20000; ++i)
    sum = sum * 31 + std::bit_cast<std::uint32_t>(
                         hyperbolic_tangent(static_cast<float>(i - 10000) * 0.0009765625f));
  CHECK(sum == 0x547be83cu);
}
