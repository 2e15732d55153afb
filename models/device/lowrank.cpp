#include "models/device/lowrank.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poseidon {

namespace {

/// A number from -1 to 1 for place `i` of Q.
float drawn(const lowrank_draw& d, std::size_t i) {
  const auto words = random_words(d.seed, random_use::lowrank, value(d.layer), d.clock,
                                  static_cast<std::uint32_t>(i / 4));
  return 2 * unit_float(words[i % 4]) - 1;
}

}  // namespace

void first_q(const lowrank_shape& shape, const lowrank_draw& draw, std::span<float> q) {
  for (std::size_t i = 0; i < shape.q_values(); ++i) q[i] = drawn(draw, i);
}

void warm_start(const lowrank_shape& shape, const lowrank_draw& draw, std::span<const float> sum,
                std::span<float> q) {
  const auto rank = shape.rank;
  for (std::size_t k = 0; k < rank; ++k) {
    float largest = 0;
    for (auto i = k; i < sum.size(); i += rank) largest = std::max(largest, std::abs(sum[i]));
    int exponent = 0;
    if (std::isfinite(largest)) (void)std::frexp(largest, &exponent);
    for (auto i = k; i < sum.size(); i += rank)
      q[i] = largest == 0 ? drawn(draw, i) : std::ldexp(sum[i], -exponent);
  }
}

namespace {

/// One column of P while it is made orthogonal.
struct column {
  std::span<float> p;
  std::size_t rank = 0, at = 0;

  [[nodiscard]] float& operator[](std::size_t i) const { return p[i * rank + at]; }
  [[nodiscard]] std::size_t size() const { return p.size() / rank; }
  [[nodiscard]] double dot(const column& other) const {
    double sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += double{(*this)[i]} * double{other[i]};
    return sum;
  }
  void subtract(double factor, const column& other) const {
    for (std::size_t i = 0; i < size(); ++i)
      (*this)[i] = static_cast<float>((*this)[i] - factor * other[i]);
  }
  void scale(double factor) const {
    for (std::size_t i = 0; i < size(); ++i) (*this)[i] = static_cast<float>((*this)[i] * factor);
  }
};

/// What rounding leaves of a column that lies in the span of the ones before it, in parts of its length.
constexpr double least_left = 1e-6;

}  // namespace

void orthogonalise(const lowrank_shape& shape, std::span<float> p) {
  p = p.first(shape.p_values());
  if (!std::all_of(p.begin(), p.end(), [](float x) { return std::isfinite(x); }))
    return std::fill(p.begin(), p.end(), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t k = 0; k < shape.rank; ++k) {
    const column own{p, shape.rank, k};
    const auto before = std::sqrt(own.dot(own));
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < k; ++j) {
        const column other{p, shape.rank, j};
        own.subtract(own.dot(other), other);
      }
    const auto left = std::sqrt(own.dot(own));
    own.scale(left > least_left * before ? 1 / left : 0);
  }
}

}  // namespace poseidon
