#include "gpu/kernels/elementwise.hpp"
#include "gpu/launch.hpp"
#include "models/random.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

POSEIDON_HOST_DEVICE inline float sigmoid(float x) {
  return 0.5f * std::tanh(0.5f * x) + 0.5f;
}

POSEIDON_HOST_DEVICE inline float value_of(const unary_function& f, float x) {
  using kind = unary_function::kind;
  switch (f.what) {
    case kind::relu:
      return x > 0 ? x : f.a * x;
    case kind::absolute:
      return std::fabs(x);
    case kind::sigmoid:
      return sigmoid(x);
    case kind::tangent:
      return std::tanh(x);
    case kind::elu:
      return x > 0 ? x : f.a * (std::exp(x) - 1);
    case kind::soft_plus:  // without overflow for large x
      return x > 0 ? x + std::log(1 + std::exp(-x)) : std::log(1 + std::exp(x));
    case kind::power: {
      const float base = f.c + f.b * x;
      return f.a == 1 ? base : f.a == 0 ? 1.0f : std::pow(base, f.a);
    }
    case kind::exponential:
      return f.b * std::exp(f.a * x);
    case kind::logarithm:
      return std::log(f.a * x + f.b) * f.c;
    case kind::threshold:
      return x > f.a ? 1.0f : 0.0f;
    case kind::clip:
      return x < f.a ? f.a : x > f.b ? f.b : x;
    case kind::swish:
      return x * sigmoid(f.a * x);
  }
  return x;
}

POSEIDON_HOST_DEVICE inline float slope_of(const unary_function& f, float x, float y) {
  using kind = unary_function::kind;
  switch (f.what) {
    case kind::relu:
      return (f.a < 0 ? x : y) > 0 ? 1.0f : f.a;
    case kind::absolute:
      return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
    case kind::sigmoid:
      return y * (1 - y);
    case kind::tangent:
      return 1 - y * y;
    case kind::elu:
      return x > 0 ? 1.0f : f.a + y;
    case kind::soft_plus: {
      const float e = std::exp(x < 50 ? x : 50.0f);
      return e / (e + 1);
    }
    case kind::power:
      if (f.a == 0 || f.b == 0) return 0;
      return f.a == 1 ? f.b : f.a * f.b * std::pow(f.c + f.b * x, f.a - 1);
    case kind::exponential:
      return y * f.a;
    case kind::logarithm:
      return f.c * f.a / (f.a * x + f.b);
    case kind::threshold:
      return 0;
    case kind::clip:
      return x >= f.a && x <= f.b ? 1.0f : 0.0f;
    case kind::swish:
      return f.a * y + sigmoid(f.a * x) * (1 - f.a * y);
  }
  return 1;
}

}  // namespace

void apply(stream& s, const unary_function& f, std::size_t n, const float* x, float* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = value_of(f, x[i]); });
}

void apply_derivative(stream& s, const unary_function& f, std::size_t n, const float* x,
                      const float* y, const float* dy, float* dx) {
  const bool needs_x = f.needs_x();
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    dx[i] = dy[i] * slope_of(f, needs_x ? x[i] : 0.0f, y[i]);
  });
}

void fill(stream& s, std::size_t n, float value, float* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = value; });
}

void fill(stream& s, std::size_t n, std::int32_t value, std::int32_t* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = value; });
}

void to_floats(stream& s, std::size_t n, const std::int32_t* x, float* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = static_cast<float>(x[i]); });
}

void scale(stream& s, std::size_t n, float a, const float* x, float* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = a * x[i]; });
}

void add_scaled(stream& s, std::size_t n, float a, const float* x, float b, const float* y,
                float* z, float slope) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    const float v = a * x[i] + b * y[i];
    z[i] = v > 0 ? v : v * slope;
  });
}

void add_scaled_backward(stream& s, std::size_t n, float slope, const float* y, const float* dy,
                         float a, float* dx, float b, float* dz) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    const float g = y[i] > 0 ? dy[i] : dy[i] * slope;
    dx[i] = a * g;
    dz[i] = b * g;
  });
}

void multiply(stream& s, std::size_t n, const float* x, const float* y, float* z) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { z[i] = x[i] * y[i]; });
}

void take_larger(stream& s, std::size_t n, const float* x, bool ties, std::int32_t number, float* y,
                 std::int32_t* winner) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) {
    if (!(ties ? x[i] >= y[i] : x[i] > y[i])) return;
    y[i] = x[i];
    winner[i] = number;
  });
}

void give_to_winner(stream& s, std::size_t n, std::int32_t number, const std::int32_t* winner,
                    const float* dy, float* dx) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { dx[i] = winner[i] == number ? dy[i] : 0.0f; });
}

void drop_out(stream& s, const dropout_draw& draw, std::size_t samples, std::size_t per_sample,
              const float* x, float* y) {
  const index values = to_index(per_sample), groups = values / 4 + (values % 4 != 0 ? 1 : 0);
  // unit_float(word) >= ratio, in integers: word >> 8 >= ratio * 2^24.
  const auto least =
      static_cast<std::uint32_t>(std::ceil(static_cast<double>(draw.ratio) * 16777216.0));
  const float kept = 1.0f / (1.0f - draw.ratio);
  const dropout_draw d = draw;
  for_each(s, samples * groups, [=] POSEIDON_DEVICE(index i) {
    const index sample = i / groups, group = i % groups;
    const auto words =
        random_words(d.seed, random_use::dropout, d.layer, d.first_sample + sample, group);
    for (index k = 0; k < 4 && group * 4 + k < values; ++k) {
      const index at = sample * values + group * 4 + k;
      y[at] = x[at] * (words[k] >> 8 >= least ? kept : 0.0f);
    }
  });
}

}  // namespace poseidon::gpu
