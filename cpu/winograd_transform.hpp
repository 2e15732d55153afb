// cpu/winograd_transform.hpp
//
// The three matrices of Winograd's algorithm F(4, 5) in one dimension, and their transposes as far as they
// are needed, on vectors of sixteen channels. It evaluates polynomials at 0, 1, -1, 2, -2, 1/2, -1/2 and
// infinity: with these eight products four outputs of a five-tap filter are
//     y = output( taps(g) * input(d) ),
// and in two dimensions both ways of every tile are transformed. Points of a pair p, -p share their even and
// odd parts, which halves the work.
//
// Only for functions that are compiled for AVX-512 (POSEIDON_WIDE), into which all of this is inlined.
// Source   Lavin & Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
#pragma once
#include <cstddef>
#include <immintrin.h>

#define POSEIDON_WIDE __attribute__((target("avx512f")))
#define POSEIDON_WIDE_INLINE __attribute__((target("avx512f"), always_inline)) inline

namespace poseidon::cpu::winograd {

constexpr std::size_t lanes = 16;   ///< channels in a vector
constexpr std::size_t points = 8;   ///< in each of two dimensions
constexpr std::size_t outputs = 4;  ///< a tile's edge
constexpr std::size_t taps = 5;     ///< a window's edge
constexpr std::size_t window = 8;   ///< inputs that a tile's outputs see, along an edge

POSEIDON_WIDE_INLINE __m512 times(float a, __m512 x) {
  return _mm512_mul_ps(_mm512_set1_ps(a), x);
}
POSEIDON_WIDE_INLINE __m512 plus(__m512 sum, float a, __m512 x) {
  return _mm512_fmadd_ps(_mm512_set1_ps(a), x, sum);
}

/// Eight inputs to their values at the points.
struct input_transform {
  static constexpr std::size_t from = window, to = points;
  POSEIDON_WIDE_INLINE static void apply(const __m512 (&d)[from], __m512 (&t)[to]) {
    t[0] = plus(d[0] - d[6], 5.25f, d[4] - d[2]);
    t[7] = plus(d[7] - d[1], 5.25f, d[3] - d[5]);
    const __m512 even1 = plus(d[2] + d[6], -4.25f, d[4]);
    const __m512 odd1 = plus(d[1] + d[5], -4.25f, d[3]);
    t[1] = even1 + odd1;
    t[2] = even1 - odd1;
    const __m512 even2 = plus(plus(d[6], 0.25f, d[2]), -1.25f, d[4]);
    const __m512 odd2 = plus(plus(times(0.5f, d[1]), -2.5f, d[3]), 2.0f, d[5]);
    t[3] = even2 + odd2;
    t[4] = even2 - odd2;
    const __m512 even3 = plus(plus(d[6], 4.0f, d[2]), -5.0f, d[4]);
    const __m512 odd3 = plus(plus(times(2.0f, d[1]), -2.5f, d[3]), 0.5f, d[5]);
    t[5] = even3 + odd3;
    t[6] = even3 - odd3;
  }
};

/// Products at the points to four outputs.
struct output_transform {
  static constexpr std::size_t from = points, to = outputs;
  POSEIDON_WIDE_INLINE static void apply(const __m512 (&m)[from], __m512 (&y)[to]) {
    const __m512 even1 = m[1] + m[2], odd1 = m[1] - m[2];
    const __m512 even2 = m[3] + m[4], odd2 = m[3] - m[4];
    const __m512 even3 = m[5] + m[6], odd3 = m[5] - m[6];
    y[0] = (m[0] + even1) + (even2 + even3);
    y[1] = plus(plus(odd1, 2.0f, odd2), 0.5f, odd3);
    y[2] = plus(plus(even1, 4.0f, even2), 0.25f, even3);
    y[3] = plus(plus(odd1 + m[7], 8.0f, odd2), 0.125f, odd3);
  }
};

/// The transpose of output_transform: four gradients of outputs to those of the products.
struct output_gradient {
  static constexpr std::size_t from = outputs, to = points;
  POSEIDON_WIDE_INLINE static void apply(const __m512 (&d)[from], __m512 (&t)[to]) {
    t[0] = d[0];
    const __m512 even1 = d[0] + d[2], odd1 = d[1] + d[3];
    t[1] = even1 + odd1;
    t[2] = even1 - odd1;
    const __m512 even2 = plus(d[0], 4.0f, d[2]), odd2 = plus(times(2.0f, d[1]), 8.0f, d[3]);
    t[3] = even2 + odd2;
    t[4] = even2 - odd2;
    const __m512 even3 = plus(d[0], 0.25f, d[2]), odd3 = plus(times(0.5f, d[1]), 0.125f, d[3]);
    t[5] = even3 + odd3;
    t[6] = even3 - odd3;
    t[7] = d[3];
  }
};

// What makes products at the points into coefficients again; all of it is on the side of the weights.
constexpr float scale1 = -2.0f / 9, scale2 = 1.0f / 90, scale3 = 32.0f / 45;

/// Five weights to their scaled values at the points.
struct weight_transform {
  static constexpr std::size_t from = taps, to = points;
  POSEIDON_WIDE_INLINE static void apply(const __m512 (&g)[from], __m512 (&t)[to]) {
    t[0] = g[0];
    const __m512 even1 = times(scale1, g[0] + g[2] + g[4]), odd1 = times(scale1, g[1] + g[3]);
    t[1] = even1 + odd1;
    t[2] = even1 - odd1;
    const __m512 even2 = times(scale2, plus(plus(g[0], 4.0f, g[2]), 16.0f, g[4]));
    const __m512 odd2 = times(scale2, plus(times(2.0f, g[1]), 8.0f, g[3]));
    t[3] = even2 + odd2;
    t[4] = even2 - odd2;
    const __m512 even3 = times(scale3, plus(plus(g[0], 0.25f, g[2]), 0.0625f, g[4]));
    const __m512 odd3 = times(scale3, plus(times(0.5f, g[1]), 0.125f, g[3]));
    t[5] = even3 + odd3;
    t[6] = even3 - odd3;
    t[7] = g[4];
  }
};

/// The transpose of weight_transform: gradients at the points to those of five weights.
struct weight_gradient {
  static constexpr std::size_t from = points, to = taps;
  POSEIDON_WIDE_INLINE static void apply(const __m512 (&t)[from], __m512 (&g)[to]) {
    const __m512 even1 = times(scale1, t[1] + t[2]), odd1 = times(scale1, t[1] - t[2]);
    const __m512 even2 = times(scale2, t[3] + t[4]), odd2 = times(scale2, t[3] - t[4]);
    const __m512 even3 = times(scale3, t[5] + t[6]), odd3 = times(scale3, t[5] - t[6]);
    g[0] = (t[0] + even1) + (even2 + even3);
    g[1] = plus(plus(odd1, 2.0f, odd2), 0.5f, odd3);
    g[2] = plus(plus(even1, 4.0f, even2), 0.25f, even3);
    g[3] = plus(plus(odd1, 8.0f, odd2), 0.125f, odd3);
    g[4] = plus(plus(even1 + t[7], 16.0f, even2), 0.0625f, even3);
  }
};

}  // namespace poseidon::cpu::winograd
