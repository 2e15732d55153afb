#include "gpu/kernels/elementwise.hpp"
#include "gpu/runtime/map.hpp"
#include "models/random.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

POSEIDON_HOST_DEVICE inline float sigmoid(float x) {
  return 0.5f * std::tanh(0.5f * x) + 0.5f;
}

POSEIDON_HOST_DEVICE inline float value_of(const activation& f, float x) {
  using kind = activation::kind;
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

POSEIDON_HOST_DEVICE inline float slope_of(const activation& f, float x, float y) {
  using kind = activation::kind;
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

void apply(stream& s, const activation& f, std::size_t n, const_values x, values y) {
  map(
      s, n, y, [=] POSEIDON_DEVICE(index, float v) { return value_of(f, v); }, x);
}

void apply_derivative(stream& s, const activation& f, std::size_t n, const_values x, const_values y,
                      const_values dy, values dx) {
  map(
      s, n, dx,
      [=] POSEIDON_DEVICE(index, float of_x, float of_y, float d) {
        return d * slope_of(f, of_x, of_y);
      },
      f.needs_x() ? x : y, y, dy);
}

void fill(stream& s, std::size_t n, float value, values y) {
  map(
      s, n, y, [=] POSEIDON_DEVICE(index, float) { return value; }, y);
}

void fill(stream& s, std::size_t n, std::int32_t value, std::int32_t* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = value; });
}

void to_floats(stream& s, std::size_t n, const std::int32_t* x, float* y) {
  for_each(s, n, [=] POSEIDON_DEVICE(index i) { y[i] = static_cast<float>(x[i]); });
}

void scale(stream& s, std::size_t n, float a, const_values x, values y) {
  map(
      s, n, y, [=] POSEIDON_DEVICE(index, float v) { return a * v; }, x);
}

void add_scaled(stream& s, std::size_t n, float a, const_values x, float b, const_values y,
                values z, float slope) {
  map(
      s, n, z,
      [=] POSEIDON_DEVICE(index, float of_x, float of_y) {
        const float v = a * of_x + b * of_y;
        return v > 0 ? v : v * slope;
      },
      x, y);
}

void add_scaled_backward(stream& s, std::size_t n, float slope, const_values y, const_values dy,
                         const_values more, float a, values dx, float b, values dz) {
  if (more.at() != nullptr)
    return map_to_two(
        s, n, dx, dz,
        [=] POSEIDON_DEVICE(index, float of_y, float one, float other) {
          const float d = one + other, g = of_y > 0 ? d : d * slope;
          return two_floats{a * g, b * g};
        },
        y, dy, more);
  map_to_two(
      s, n, dx, dz,
      [=] POSEIDON_DEVICE(index, float of_y, float d) {
        const float g = of_y > 0 ? d : d * slope;
        return two_floats{a * g, b * g};
      },
      y, dy);
}

void add_up(stream& s, std::size_t n, std::span<const const_values> b, values z) {
  if (b.size() == 2) {
    add_scaled(s, n, 1, b[0], 1, b[1], z);
  } else if (b.size() == 3) {
    map(
        s, n, z, [=] POSEIDON_DEVICE(index, float v, float w, float x) { return v + w + x; }, b[0],
        b[1], b[2]);
  } else {
    map(
        s, n, z,
        [=] POSEIDON_DEVICE(index, float v, float w, float x, float y) { return v + w + x + y; },
        b[0], b[1], b[2], b[3]);
  }
}

void multiply(stream& s, std::size_t n, const_values x, const_values y, values z) {
  map(
      s, n, z, [=] POSEIDON_DEVICE(index, float of_x, float of_y) { return of_x * of_y; }, x, y);
}

void take_larger(stream& s, std::size_t n, const_values x, bool ties, std::int32_t number, values y,
                 std::int32_t* winner) {
  map(
      s, n, y,
      [=] POSEIDON_DEVICE(index i, float of_x, float of_y) {
        if (!(ties ? of_x >= of_y : of_x > of_y)) return of_y;
        winner[i] = number;
        return of_x;
      },
      x, y);
}

void give_to_winner(stream& s, std::size_t n, std::int32_t number, const std::int32_t* winner,
                    const_values dy, values dx) {
  map(
      s, n, dx, [=] POSEIDON_DEVICE(index i, float d) { return winner[i] == number ? d : 0.0f; },
      dy);
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
