#include "models/device/square_sum.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace poseidon;

namespace {

square_sum of(std::span<const float> values) {
  square_sum s;
  s.add(values);
  return s;
}

/// Values of every magnitude, from denormal to huge.
std::vector<float> wild(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-148, 127);
  std::vector<float> v(size);
  for (auto& x : v) x = std::ldexp(mantissa(random), exponent(random));
  return v;
}

}  // namespace

TEST_CASE("square_sum: agrees with a plain sum in double precision") {
  CHECK(of({}).value() == 0);
  for (const std::size_t size : {1u, 2u, 1000u, 65536u, 200001u}) {
    std::mt19937 random(static_cast<unsigned>(size));
    std::normal_distribution<float> normal;
    std::vector<float> v(size);
    double plain = 0;
    for (auto& x : v) x = normal(random), plain += double{x} * x;
    CHECK(of(v).value() == doctest::Approx(plain).epsilon(1e-13));
  }
}

TEST_CASE("square_sum: small numbers are not lost beside large ones, nor denormal ones") {
  const float tiny = std::numeric_limits<float>::denorm_min();
  CHECK(of(std::vector<float>{tiny}).value() == double{tiny} * tiny);
  CHECK(of(std::vector<float>{-3.0f, 4.0f}).value() == 25);
  // Each small square is below half a unit of the large one: a sum in order would drop them all.
  std::vector<float> v(1 << 20, std::ldexp(1.0f, -27));
  v.front() = 1;
  CHECK(of(v).value() == 1 + (std::ldexp(1.0, 20) - 1) * std::ldexp(1.0, -54));
}

TEST_CASE("square_sum: order, cut and the way over the wire change no bit") {
  auto v = wild(100'003, 1);
  const auto whole = of(v).value();
  CHECK(std::isfinite(whole));
  std::shuffle(v.begin(), v.end(), std::mt19937(2));
  square_sum parts;
  for (std::size_t at = 0; at < v.size();) {
    const auto size = std::min<std::size_t>(1 + at % 7919, v.size() - at);
    std::vector<std::byte> wire(square_sum::bytes);
    const auto to = std::span<std::byte, square_sum::bytes>(wire);
    of(std::span(v).subspan(at, size)).write(to);
    parts.add(square_sum::read(to));
    at += size;
  }
  CHECK(parts.value() == whole);
}

TEST_CASE("square_sum: says NaN and infinity, also of a part that came from elsewhere") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(of(std::vector<float>{1, -infinity}).value() == std::numeric_limits<double>::infinity());
  auto s = of(std::vector<float>{infinity, 2});
  s.add(of(std::vector<float>{nan}));
  CHECK(std::isnan(s.value()));
}
