#include "models/device/lowrank.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace poseidon;

namespace {

std::vector<float> drawn(std::size_t values, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(values);
  for (auto& x : out) x = normal(random);
  return out;
}

/// A matrix of exactly this rank.
std::vector<float> of_rank(const lowrank_shape& shape, std::size_t rank, unsigned seed) {
  const lowrank_shape thin{shape.rows, shape.columns, rank};
  std::vector<float> out(shape.values());
  lowrank_gradient(thin, drawn(thin.p_values(), seed), drawn(thin.q_values(), seed + 1), out);
  return out;
}

double dot(const lowrank_shape& shape, const std::vector<float>& p, std::size_t a, std::size_t b) {
  double sum = 0;
  for (std::size_t i = 0; i < shape.rows; ++i)
    sum += double{p[i * shape.rank + a]} * double{p[i * shape.rank + b]};
  return sum;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

std::vector<float> less(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

/// What some workers' routes make of their gradients, clock after clock.
struct exchange {
  lowrank_shape shape;
  bool remembers = true;
  std::vector<float> q = std::vector<float>(shape.q_values());
  std::vector<std::vector<float>> memories = {};
  std::uint64_t clock = 0;

  std::vector<float> step(const std::vector<std::vector<float>>& gradients) {
    const lowrank_draw draw{7, layer_id{2}, clock};
    if (clock == 0) first_q(shape, draw, q);
    memories.resize(gradients.size(), std::vector<float>(shape.values()));
    std::vector<float> p(shape.p_values()), sum(shape.q_values()), part(shape.p_values());
    for (std::size_t w = 0; w < gradients.size(); ++w) {
      for (std::size_t i = 0; i < shape.values(); ++i) memories[w][i] += gradients[w][i];
      lowrank_p(shape, memories[w], q, part);
      for (std::size_t i = 0; i < p.size(); ++i) p[i] += part[i];
    }
    orthogonalise(shape, p);
    for (auto& m : memories) {
      std::vector<float> own(shape.q_values());
      lowrank_q(shape, m, p, own);
      lowrank_take_off(shape, p, own, m);
      if (!remembers) std::fill(m.begin(), m.end(), 0.0f);
      for (std::size_t i = 0; i < own.size(); ++i) sum[i] += own[i];
    }
    std::vector<float> out(shape.values());
    lowrank_gradient(shape, p, sum, out);
    ++clock;
    warm_start(shape, {7, layer_id{2}, clock}, sum, q);
    return out;
  }
};

}  // namespace

TEST_CASE(
    "lowrank: columns of P are of length 1 and orthogonal, also where they are nearly alike") {
  for (const std::size_t rank : {1u, 3u, 4u, 8u}) {
    const lowrank_shape shape{50, 7, rank};
    auto p = drawn(shape.p_values(), 3);
    for (std::size_t i = 0; i < shape.rows; ++i)  // all near the first
      for (std::size_t k = 1; k < rank; ++k)
        p[i * rank + k] = p[i * rank] + 1e-3f * p[i * rank + k];
    orthogonalise(shape, p);
    for (std::size_t a = 0; a < rank; ++a)
      for (std::size_t b = 0; b <= a; ++b)
        CHECK(dot(shape, p, a, b) == doctest::Approx(a == b ? 1 : 0).epsilon(1e-5).scale(1));
  }
}

TEST_CASE("lowrank: a column in the span of those before it becomes 0, and one of zeros stays so") {
  const lowrank_shape shape{20, 7, 4};
  auto p = drawn(shape.p_values(), 3);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    p[i * 4 + 1] = -3 * p[i * 4];
    p[i * 4 + 2] = 0;
  }
  orthogonalise(shape, p);
  CHECK(dot(shape, p, 1, 1) == 0);
  CHECK(dot(shape, p, 2, 2) == 0);
  CHECK(dot(shape, p, 0, 0) == doctest::Approx(1));
  CHECK(dot(shape, p, 3, 3) == doctest::Approx(1));
  CHECK(dot(shape, p, 0, 3) == doctest::Approx(0).scale(1));
}

/// One value of each product, by single operations in the order that lowrank.hpp promises.
struct plainly {
  lowrank_shape s;
  [[nodiscard]] float p(const std::vector<float>& m, const std::vector<float>& q, std::size_t i,
                        std::size_t k) const {
    float sum = 0;
    for (std::size_t j = 0; j < s.columns; ++j) sum += m[i * s.columns + j] * q[j * s.rank + k];
    return sum;
  }
  [[nodiscard]] float q(const std::vector<float>& m, const std::vector<float>& p, std::size_t j,
                        std::size_t k) const {
    float sum = 0;
    for (std::size_t i = 0; i < s.rows; ++i) sum += m[i * s.columns + j] * p[i * s.rank + k];
    return sum;
  }
  [[nodiscard]] float gradient(const std::vector<float>& p, const std::vector<float>& q,
                               std::size_t i, std::size_t j) const {
    float sum = p[i * s.rank] * q[j * s.rank];
    for (std::size_t k = 1; k < s.rank; ++k) sum += p[i * s.rank + k] * q[j * s.rank + k];
    return sum;
  }
};

TEST_CASE("lowrank: products have the bits of one operation after the other, in any shape") {
  std::mt19937 random(5);
  for (int n = 0; n < 150; ++n) {
    const lowrank_shape s{1 + random() % 40, 1 + random() % (n % 5 == 0 ? 900 : 40),
                          n % 3 == 0 ? 1 + random() % max_rank : n % 3 * 4};
    CAPTURE(s.rows);
    CAPTURE(s.columns);
    CAPTURE(s.rank);
    const plainly one{s};
    const auto m = drawn(s.values(), random()), p = drawn(s.p_values(), random()),
               q = drawn(s.q_values(), random());
    std::vector<float> made_p(s.p_values(), 7), made_q(s.q_values(), 7), gradient(s.values(), 7);
    auto left = m;
    lowrank_p(s, m, q, made_p);
    lowrank_q(s, m, p, made_q);
    lowrank_gradient(s, p, q, gradient);
    lowrank_take_off(s, p, q, left);
    std::size_t different = 0;
    for (std::size_t k = 0; k < s.rank; ++k) {
      for (std::size_t i = 0; i < s.rows; ++i)
        different += made_p[i * s.rank + k] != one.p(m, q, i, k);
      for (std::size_t j = 0; j < s.columns; ++j)
        different += made_q[j * s.rank + k] != one.q(m, p, j, k);
    }
    for (std::size_t i = 0; i < s.rows; ++i)
      for (std::size_t j = 0; j < s.columns; ++j) {
        const auto at = i * s.columns + j;
        different += gradient[at] != one.gradient(p, q, i, j);
        different += left[at] != m[at] - one.gradient(p, q, i, j);
      }
    CHECK(different == 0);
  }
}

TEST_CASE("lowrank: what is not finite makes all of P NaN") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const lowrank_shape shape{20, 7, 4};
    auto p = drawn(shape.p_values(), 3);
    p[41] = bad;
    orthogonalise(shape, p);
    CHECK(std::all_of(p.begin(), p.end(), [](float x) { return std::isnan(x); }));
  }
  exchange t{{20, 30, 4}};
  auto gradient = drawn(600, 1);
  gradient[77] = std::numeric_limits<float>::infinity();
  const auto sent = t.step({gradient, drawn(600, 2)});
  CHECK(std::all_of(sent.begin(), sent.end(), [](float x) { return std::isnan(x); }));
}

TEST_CASE("lowrank: gradients of zeros come back as zeros, and the next ones are found") {
  exchange t{{20, 30, 4}};
  const std::vector<float> zeros(600);
  for (int i = 0; i < 3; ++i) CHECK(t.step({zeros, zeros}) == zeros);
  const auto gradient = of_rank(t.shape, 4, 5);
  CHECK(norm(less(t.step({gradient}), gradient)) < 1e-4 * norm(gradient));
}

TEST_CASE("lowrank: a sum whose rank is no larger is sent whole, whatever the rank") {
  for (const std::size_t rank : {4u, 8u, 5u})
    for (std::size_t is = 1; is <= rank; ++is) {
      exchange t{{20, 30, rank}};
      const auto a = of_rank(t.shape, is, 5);
      auto b = a;  // the sum of both has the same rank
      for (auto& x : b) x *= -0.25f;
      auto sum = a;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
      CHECK(norm(less(t.step({a, b}), sum)) < 1e-4 * norm(sum));
    }
}

TEST_CASE("lowrank: with the error memory a steady gradient arrives, and without it never does") {
  const auto a = drawn(600, 1), b = drawn(600, 2);
  auto sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  const auto left_of_mean = [&](bool remembers) {
    exchange t{{20, 30, 4}, remembers};
    std::vector<double> total(600);
    const int clocks = 400;
    for (int c = 0; c < clocks; ++c) {
      const auto sent = t.step({a, b});
      for (std::size_t i = 0; i < sent.size(); ++i) total[i] += sent[i];
    }
    std::vector<float> mean(total.size());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(total[i] / clocks);
    return norm(less(mean, sum)) / norm(sum);
  };
  CHECK(left_of_mean(true) < 0.05);
  CHECK(left_of_mean(false) > 0.4);
}

TEST_CASE("lowrank: warm starts find the largest part of a steady gradient") {
  const lowrank_shape shape{30, 40, 4};
  auto gradient = of_rank(shape, 4, 5);
  const auto noise = drawn(shape.values(), 9);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += 0.3f * noise[i];
  exchange cold{shape, false}, warm{shape, false};
  const auto first = norm(less(cold.step({gradient}), gradient));
  double last = 0;
  for (int c = 0; c < 20; ++c) last = norm(less(warm.step({gradient}), gradient));
  CHECK(last < 0.95 * first);
}

TEST_CASE("lowrank: a warm start has the sum's columns times powers of two, or new numbers") {
  const lowrank_shape shape{9, 3, 4};
  const std::vector<float> sum{3e-30f, 0, -5, 1e30f, 1e-30f, 0, 2.5f, -1e29f, -2e-30f, 0, 1, 3e30f};
  std::vector<float> q(12), first(12);
  warm_start(shape, {1, layer_id{2}, 3}, sum, q);
  first_q(shape, {1, layer_id{2}, 3}, first);
  for (std::size_t i = 0; i < 12; ++i) {
    if (i % 4 == 1) CHECK(q[i] == first[i]);
    CHECK(std::abs(q[i]) <= 1);
  }
  CHECK(q[2] == -5.0f / 8);
  CHECK(q[6] == 2.5f / 8);
  CHECK(q[0] / q[4] == sum[0] / sum[4]);
}

TEST_CASE("lowrank: the numbers of a first Q depend on seed, layer and clock") {
  const lowrank_shape shape{9, 50, 4};
  const auto of = [&](lowrank_draw d) {
    std::vector<float> q(shape.q_values());
    first_q(shape, d, q);
    return q;
  };
  const auto q = of({1, layer_id{2}, 3});
  CHECK(q == of({1, layer_id{2}, 3}));
  CHECK(q != of({2, layer_id{2}, 3}));
  CHECK(q != of({1, layer_id{3}, 3}));
  CHECK(q != of({1, layer_id{2}, 4}));
  CHECK(*std::min_element(q.begin(), q.end()) < -0.9f);
  CHECK(*std::max_element(q.begin(), q.end()) > 0.9f);
}

TEST_CASE("lowrank_gradient: each product and each sum is rounded once, in the order of the rank") {
  const lowrank_shape shape{5, 6, 4};
  const auto p = drawn(shape.p_values(), 1), q = drawn(shape.q_values(), 2);
  std::vector<float> made(shape.values());
  lowrank_gradient(shape, p, q, made);
  for (std::size_t i = 0; i < shape.rows; ++i)
    for (std::size_t j = 0; j < shape.columns; ++j) {
      volatile float sum = p[i * 4] * q[j * 4];  // the compiler must not fuse here, either
      for (std::size_t k = 1; k < 4; ++k) {
        volatile const float product = p[i * 4 + k] * q[j * 4 + k];
        sum = sum + product;
      }
      CHECK(made[i * shape.columns + j] == sum);
    }
}
