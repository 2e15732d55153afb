// Initial values: ranges and moments by Caffe's formulas, and dependence on (seed, parameter,
// index) alone.
#include "models/net/fillers.hpp"

#include "models/spec/spec_file.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace poseidon;

namespace {

net_parameter parameter(const std::string& type, shape s) {
  net_parameter p;
  p.name = "a/0";
  p.shape = std::move(s);
  p.filler.set_type(type);
  return p;
}

std::vector<float> filled(const net_parameter& p, std::uint32_t index = 0, std::uint64_t seed = 1) {
  std::vector<float> values(static_cast<std::size_t>(count(p.shape)));
  fill(p, index, seed, values);
  return values;
}

double mean(const std::vector<float>& v) {
  double sum = 0;
  for (const float x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

double deviation(const std::vector<float>& v) {
  const double m = mean(v);
  double sum = 0;
  for (const float x : v) sum += (x - m) * (x - m);
  return std::sqrt(sum / static_cast<double>(v.size()));
}

double largest(const std::vector<float>& v) {
  double most = 0;
  for (const float x : v) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

}  // namespace

TEST_CASE(
    "fillers: the same seed and parameter give the same values, another of either gives others") {
  const auto p = parameter("gaussian", {7, 9});
  CHECK(filled(p, 3, 5) == filled(p, 3, 5));
  CHECK(filled(p, 3, 5) != filled(p, 4, 5));
  CHECK(filled(p, 3, 5) != filled(p, 3, 6));
}

TEST_CASE(
    "fillers: a longer blob begins like a shorter one, so no value depends on how many there are") {
  const auto few = filled(parameter("uniform", {5})), many = filled(parameter("uniform", {6}));
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
}

TEST_CASE("fillers: xavier spans sqrt(3 / n), n by variance_norm") {
  auto p = parameter("xavier", {50, 20, 5, 5});
  const auto limit = [&] { return largest(filled(p)); };
  CHECK(limit() == doctest::Approx(std::sqrt(3.0 / 500)).epsilon(0.01));
  p.filler.set_variance_norm(::caffe::FillerParameter::FAN_OUT);
  CHECK(limit() == doctest::Approx(std::sqrt(3.0 / 1250)).epsilon(0.01));
  p.filler.set_variance_norm(::caffe::FillerParameter::AVERAGE);
  CHECK(limit() == doctest::Approx(std::sqrt(3.0 / 875)).epsilon(0.01));
  CHECK(std::abs(mean(filled(p))) < 0.001);
}

TEST_CASE("fillers: msra and gaussian have the deviation that they promise") {
  CHECK(deviation(filled(parameter("msra", {100, 400}))) ==
        doctest::Approx(std::sqrt(2.0 / 400)).epsilon(0.02));
  auto p = parameter("gaussian", {200, 200});
  p.filler.set_mean(3);
  p.filler.set_std(0.5f);
  CHECK(mean(filled(p)) == doctest::Approx(3).epsilon(0.01));
  CHECK(deviation(filled(p)) == doctest::Approx(0.5).epsilon(0.02));
  p.filler.set_mean(0);
  p.filler.set_sparse(50);  // 50 of 200 outputs: a quarter of the values
  const auto values = filled(p);
  const auto zeros = static_cast<double>(std::count(values.begin(), values.end(), 0.0f));
  CHECK(zeros / 40000 == doctest::Approx(0.75).epsilon(0.02));
}

TEST_CASE("fillers: bilinear interpolates, unitball sums to one, constant is constant") {
  const auto up = filled(parameter("bilinear", {1, 1, 4, 4}));
  CHECK(up[0] == doctest::Approx(0.0625));
  CHECK(up[5] == doctest::Approx(0.5625));
  CHECK(up[15] == doctest::Approx(0.0625));
  const auto ball = filled(parameter("positive_unitball", {3, 8}));
  for (int row = 0; row < 3; ++row) {
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += ball[static_cast<std::size_t>(8 * row + i)];
    CHECK(sum == doctest::Approx(1));
  }
  CHECK(filled(parameter("constant", {})) == std::vector<float>{0});
}

TEST_CASE("fillers: an unknown type, a wrong buffer and a misused sparse are refused") {
  CHECK_THROWS_WITH_AS(
      filled(parameter("gausian", {2})),
      "parameter \"a/0\" 2: the filler \"gausian\" is none of Caffe's. Did you mean \"gaussian\"?",
      spec_error);
  std::vector<float> three(3);
  CHECK_THROWS_WITH_AS(fill(parameter("constant", {2}), 0, 1, three),
                       "parameter \"a/0\" 2: it is to be filled into 3 values, but has 2.",
                       spec_error);
  auto p = parameter("xavier", {2});
  p.filler.set_sparse(1);
  CHECK_THROWS_AS(filled(p), spec_error);
  CHECK_THROWS_AS(filled(parameter("bilinear", {1, 1, 2, 3})), spec_error);
}
