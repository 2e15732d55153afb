// Types of values, and the launches over them: what is read 16 bytes at a time is what is read one by one.
#include "gpu/kernels/channel_sums.hpp"
#include "gpu/runtime/divisor.hpp"
#include "gpu/simulated/control.hpp"
#include "tests/gpu/streams/typed_memory.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace poseidon;
using namespace poseidon::gpu;
using poseidon::test::both_types;
using poseidon::test::typed_memory;

namespace {

struct sums {
  double first, second;
  friend sums operator+(sums a, sums b) { return {a.first + b.first, a.second + b.second}; }
};

std::vector<float> whole_numbers(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i % 97) - 40;
  return v;
}

}  // namespace

TEST_CASE("values: bfloat16 is float32 rounded to the nearest, of two the even one") {
  const auto bits = [](float v) { return round_to<bfloat16>(v).bits; };
  CHECK(bits(1.0f) == 0x3f80);
  CHECK(bits(-2.5f) == 0xc020);
  CHECK(bits(1.0f + 1.0f / 256) == 0x3f80);  // halfway, down to even
  CHECK(bits(1.0f + 3.0f / 256) == 0x3f82);  // halfway, up to even
  CHECK(bits(1.0f + 1.1f / 256) == 0x3f81);
  CHECK(bits(std::numeric_limits<float>::infinity()) == 0x7f80);
  CHECK(bits(std::numeric_limits<float>::max()) == 0x7f80);  // none is as large
  CHECK(bits(-0.0f) == 0x8000);
  CHECK(std::isnan(to_float(round_to<bfloat16>(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(to_float(round_to<bfloat16>(std::bit_cast<float>(0x7f800001u)))));
  for (std::uint32_t b = 0; b < 0x7f80; ++b)  // each is its own nearest
    if (bits(to_float(bfloat16{static_cast<std::uint16_t>(b)})) != b) FAIL(b);
}

TEST_CASE("values: they are taken for their own type only") {
  float f[4] = {};
  bfloat16 b[4] = {};
  const values of_floats(f), of_halves(b);
  CHECK(static_cast<float*>(of_floats) == f);
  CHECK(static_cast<bfloat16*>(of_halves) == b);
  CHECK_THROWS_AS((void)static_cast<float*>(of_halves), const error&);
  CHECK_THROWS_AS((void)static_cast<const bfloat16*>(const_values(of_floats)), const error&);
  CHECK((of_floats + 3).at() == f + 3);
  CHECK((of_halves + 3).at() == b + 3);
  CHECK(static_cast<bfloat16*>(values()) == nullptr);
}

TEST_CASE("divisor: quotients and remainders are those of a division") {
  std::uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  std::vector<index> divisors{1,     2,     3,          7,          64,         1000,
                              65535, 65537, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  for (int i = 0; i < 200; ++i) divisors.push_back((next() >> (next() % 32)) | 1);
  for (const index d : divisors) {
    const divisor by(d);
    std::vector<index> dividends{0,          1,          d - 1,      d,         d + 1,
                                 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    for (int i = 0; i < 200; ++i) dividends.push_back(next() >> (next() % 32));
    for (const index n : dividends)
      if (by.quotient(n) != n / d || by.remainder(n) != n % d) FAIL(n, " by ", d);
  }
  CHECK(divisor(0).quotient(5) == 5);
}

TEST_CASE("map: every value once, wherever it begins, in either type") {
  simulated::configure({});
  stream s(0, stream_use::compute);
  for (const value_type type : both_types) {
    for (const std::size_t n : {1, 3, 4, 8, 9, 64, 1001}) {
      for (const std::size_t shift : {0, 1, 8}) {  // values; 1 is not aligned for any type
        CAPTURE(static_cast<int>(type));
        CAPTURE(n);
        CAPTURE(shift);
        typed_memory x(type, whole_numbers(n + shift)),
            y(type, std::vector<float>(n + shift + 8, -7)),
            z(type, std::vector<float>(n + shift + 8, -7));
        map_to_two(
            s, n, y.at() + shift, z.at() + shift,
            [](index i, float v) {
              return two_floats{v + 1, static_cast<float>(i % 128)};
            },
            x.at() + shift);
        finish(s);
        for (std::size_t i = 0; i < n + shift + 8; ++i) {
          const bool inside = i >= shift && i < shift + n;
          if (y.read()[i] != (inside ? whole_numbers(n + shift)[i] + 1 : -7)) FAIL(i);
          if (z.read()[i] != (inside ? static_cast<float>((i - shift) % 128) : -7)) FAIL(i);
        }
      }
    }
  }
}

TEST_CASE("map: in place, from several, and without a second output") {
  simulated::configure({});
  stream s(0, stream_use::compute);
  for (const value_type type : both_types) {
    typed_memory x(type, whole_numbers(100)), y(type, whole_numbers(100));
    map(
        s, 100, x.at(), [](index, float a, float b) { return a - 2 * b; }, x.at(), y.at());
    map_to_two(
        s, 100, y.at(), nullptr,
        [](index, float v) {
          return two_floats{-v, 1e9f};
        },
        y.at());
    finish(s);
    for (std::size_t i = 0; i < 100; ++i) {
      if (x.read()[i] != -whole_numbers(100)[i]) FAIL(i);
      if (y.read()[i] != -whole_numbers(100)[i]) FAIL(i);
    }
  }
  typed_memory x(value_type::float32, whole_numbers(8)), y(value_type::bfloat16, whole_numbers(8));
  CHECK_THROWS_AS(map(
                      s, 8, y.at(), [](index, float v) { return v; }, x.at()),
                  const error&);
  map(
      s, 0, y.at(), [](index, float) { return 5.0f; }, y.at());
  finish(s);
  CHECK(y.read() == whole_numbers(8));
}

TEST_CASE(
    "by channel: each value with the numbers of its channel, however many rows a thread takes") {
  simulated::configure({});
  stream s(0, stream_use::compute);
  for (const value_type type : both_types) {
    for (const channel_shape& c : {channel_shape{3, 5, 1},
                                   {2, 8, 3},
                                   {1, 16, 1},
                                   {7, 16, 1},
                                   {70001, 32, 1},
                                   {40003, 64, 1}}) {
      CAPTURE(static_cast<int>(type));
      CAPTURE(c.outer);
      CAPTURE(c.channels);
      const std::size_t n = c.values();
      const auto of = whole_numbers(n);
      for (const std::size_t shift : {0, 1}) {  // 1 is not aligned for any type
        typed_memory x(type, whole_numbers(n + shift)), y(type, std::vector<float>(n + 8, -7)),
            z(type, std::vector<float>(n + 8, -7));
        const auto factor = whole_numbers(c.channels);
        typed_memory on_device(value_type::float32, factor);
        map_to_two_by_channel(
            s, c, gpu::numbers(channel_number(nullptr, 3), on_device.at()), y.at(), z.at(),
            [](index i, float three, float f, float v) {
              return two_floats{v + f + three, static_cast<float>(i % 128)};
            },
            x.at() + shift);
        finish(s);
        for (std::size_t i = 0; i < n; ++i) {
          const float v = static_cast<float>((i + shift) % 97) - 40;
          if (y.read_one(i) != v + factor[i / c.plane % c.channels] + 3) FAIL(i);
          if (z.read_one(i) != static_cast<float>(i % 128)) FAIL(i);
        }
        for (std::size_t i = n; i < n + 8; ++i)
          if (y.read_one(i) != -7 || z.read_one(i) != -7) FAIL(i);
      }
    }
  }
}

TEST_CASE("sum_by_channel: columns that packs fill, and others, of few rows and of many") {
  simulated::configure({});
  stream s(0, stream_use::compute);
  for (const value_type type : both_types) {
    for (const std::size_t rows : {1, 7, 300, 5000}) {
      for (const std::size_t columns : {1, 3, 8, 12, 64, 257, 264}) {
        CAPTURE(static_cast<int>(type));
        CAPTURE(rows);
        CAPTURE(columns);
        const auto of = whole_numbers(rows * columns);
        typed_memory x(type, of), y(type, of);
        const channel_shape c{rows, columns, 1};
        device_memory scratch(0, sum_scratch_bytes_of<sums>(c));
        std::vector<sums> found(columns, sums{-1, -1}), wanted(columns),
            again(columns, sums{-1, -1});
        for (std::size_t i = 0; i < of.size(); ++i)
          wanted[i % columns] = wanted[i % columns] + sums{double{of[i]}, static_cast<double>(i)};
        sums* const to = found.data();
        sum_by_channel<sums>(
            s, c, gpu::numbers(), scratch.bytes(),
            [](index i, float v) {
              return sums{double{v}, static_cast<double>(i)};
            },
            [to](index column, sums sum) { to[column] = sum; }, x.at());
        sums* const to_again = again.data();
        sum_and_change_by_channel<sums>(
            s, c, gpu::numbers(), scratch.bytes(), y.at(),
            [](index i, float v) {
              return changed<sums>{sums{double{v}, static_cast<double>(i)}, v / 2};
            },
            [to_again](index column, sums sum) { to_again[column] = sum; }, y.at());
        finish(s);
        for (std::size_t c = 0; c < columns; ++c) {
          // Whole numbers: exact in any order.
          if (found[c].first != wanted[c].first || found[c].second != wanted[c].second) FAIL(c);
          if (again[c].first != wanted[c].first || again[c].second != wanted[c].second) FAIL(c);
        }
        for (std::size_t i = 0; i < of.size(); ++i)
          if (y.read_one(i) != of[i] / 2) FAIL(i);
      }
    }
  }
}
