// cpu/winograd/transforms.hpp
//
// The three matrices of Winograd's algorithms F(4, 3) and F(4, 5) in one dimension, and their transposes as far as they
// are needed, on vectors of channels. They evaluate polynomials at six or eight points, infinity among them; with
// these products four outputs of a filter of three or five taps are
//     y = output( taps(g) * input(d) ),
// and in two dimensions both ways of every tile are transformed. Points of a pair p, -p share their even and
// odd parts, which halves the work.
//
// Source   Lavin & Gray, "Fast algorithms for convolutional neural networks", CVPR 2016.
#pragma once
#include "cpu/winograd/vectors.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

constexpr std::size_t outputs = 4;  ///< a tile's edge

/// F(4, Taps). `points`: in each of two dimensions, and inputs that a tile's outputs see along an edge.
template <std::size_t Taps>
struct form;

/// At 0, 5/8, -5/8, 3/2, -3/2 and infinity: half of the error that the usual 1 and 2 have.
template <>
struct form<3> {
  static constexpr std::size_t taps = 3, points = 6;
  static constexpr float a = 0.625f, b = 1.5f, aa = a * a, bb = b * b;  // exact

  /// Six inputs to their values at the points.
  struct input_transform {
    static constexpr std::size_t from = points, to = points;
    POSEIDON_WIDE_INLINE static void apply(const vector (&d)[from], vector (&t)[to]) {
      t[0] = plus(plus(d[4], aa * bb, d[0]), -(aa + bb), d[2]);
      const vector even1 = plus(d[4], -bb, d[2]), odd1 = times(a, plus(d[3], -bb, d[1]));
      t[1] = even1 + odd1;
      t[2] = even1 - odd1;
      const vector even2 = plus(d[4], -aa, d[2]), odd2 = times(b, plus(d[3], -aa, d[1]));
      t[3] = even2 + odd2;
      t[4] = even2 - odd2;
      t[5] = plus(plus(d[5], aa * bb, d[1]), -(aa + bb), d[3]);
    }
  };

  /// Products at the points to four outputs.
  struct output_transform {
    static constexpr std::size_t from = points, to = outputs;
    POSEIDON_WIDE_INLINE static void apply(const vector (&m)[from], vector (&y)[to]) {
      const vector even1 = m[1] + m[2], odd1 = m[1] - m[2];
      const vector even2 = m[3] + m[4], odd2 = m[3] - m[4];
      y[0] = m[0] + (even1 + even2);
      y[1] = plus(times(a, odd1), b, odd2);
      y[2] = plus(times(aa, even1), bb, even2);
      y[3] = plus(plus(m[5], aa * a, odd1), bb * b, odd2);
    }
  };

  /// The transpose of output_transform: four gradients of outputs to those of the products.
  struct output_gradient {
    static constexpr std::size_t from = outputs, to = points;
    POSEIDON_WIDE_INLINE static void apply(const vector (&d)[from], vector (&t)[to]) {
      t[0] = d[0];
      const vector even1 = plus(d[0], aa, d[2]), odd1 = plus(times(a, d[1]), aa * a, d[3]);
      t[1] = even1 + odd1;
      t[2] = even1 - odd1;
      const vector even2 = plus(d[0], bb, d[2]), odd2 = plus(times(b, d[1]), bb * b, d[3]);
      t[3] = even2 + odd2;
      t[4] = even2 - odd2;
      t[5] = d[3];
    }
  };

  // What makes products at the points into coefficients again; all of it is on the side of the weights.
  static constexpr float scale0 = 1 / (aa * bb), scale1 = 1 / (2 * aa * (aa - bb)),
                         scale2 = 1 / (2 * bb * (bb - aa));

  /// Three weights to their scaled values at the points.
  struct weight_transform {
    static constexpr std::size_t from = taps, to = points;
    POSEIDON_WIDE_INLINE static void apply(const vector (&g)[from], vector (&t)[to]) {
      t[0] = times(scale0, g[0]);
      const vector even1 = times(scale1, plus(g[0], aa, g[2])), odd1 = times(scale1 * a, g[1]);
      t[1] = even1 + odd1;
      t[2] = even1 - odd1;
      const vector even2 = times(scale2, plus(g[0], bb, g[2])), odd2 = times(scale2 * b, g[1]);
      t[3] = even2 + odd2;
      t[4] = even2 - odd2;
      t[5] = g[2];
    }
  };

  /// The transpose of weight_transform: gradients at the points to those of three weights.
  struct weight_gradient {
    static constexpr std::size_t from = points, to = taps;
    POSEIDON_WIDE_INLINE static void apply(const vector (&t)[from], vector (&g)[to]) {
      const vector even1 = times(scale1, t[1] + t[2]), odd1 = times(scale1, t[1] - t[2]);
      const vector even2 = times(scale2, t[3] + t[4]), odd2 = times(scale2, t[3] - t[4]);
      g[0] = plus(even1 + even2, scale0, t[0]);
      g[1] = plus(times(a, odd1), b, odd2);
      g[2] = plus(plus(t[5], aa, even1), bb, even2);
    }
  };
};

/// At 0, 1, -1, 2, -2, 1/2, -1/2 and infinity.
template <>
struct form<5> {
  static constexpr std::size_t taps = 5, points = 8;

  /// Eight inputs to their values at the points.
  struct input_transform {
    static constexpr std::size_t from = points, to = points;
    POSEIDON_WIDE_INLINE static void apply(const vector (&d)[from], vector (&t)[to]) {
      t[0] = plus(d[0] - d[6], 5.25f, d[4] - d[2]);
      t[7] = plus(d[7] - d[1], 5.25f, d[3] - d[5]);
      const vector even1 = plus(d[2] + d[6], -4.25f, d[4]);
      const vector odd1 = plus(d[1] + d[5], -4.25f, d[3]);
      t[1] = even1 + odd1;
      t[2] = even1 - odd1;
      const vector even2 = plus(plus(d[6], 0.25f, d[2]), -1.25f, d[4]);
      const vector odd2 = plus(plus(times(0.5f, d[1]), -2.5f, d[3]), 2.0f, d[5]);
      t[3] = even2 + odd2;
      t[4] = even2 - odd2;
      const vector even3 = plus(plus(d[6], 4.0f, d[2]), -5.0f, d[4]);
      const vector odd3 = plus(plus(times(2.0f, d[1]), -2.5f, d[3]), 0.5f, d[5]);
      t[5] = even3 + odd3;
      t[6] = even3 - odd3;
    }
  };

  /// Products at the points to four outputs.
  struct output_transform {
    static constexpr std::size_t from = points, to = outputs;
    POSEIDON_WIDE_INLINE static void apply(const vector (&m)[from], vector (&y)[to]) {
      const vector even1 = m[1] + m[2], odd1 = m[1] - m[2];
      const vector even2 = m[3] + m[4], odd2 = m[3] - m[4];
      const vector even3 = m[5] + m[6], odd3 = m[5] - m[6];
      y[0] = (m[0] + even1) + (even2 + even3);
      y[1] = plus(plus(odd1, 2.0f, odd2), 0.5f, odd3);
      y[2] = plus(plus(even1, 4.0f, even2), 0.25f, even3);
      y[3] = plus(plus(odd1 + m[7], 8.0f, odd2), 0.125f, odd3);
    }
  };

  /// The transpose of output_transform: four gradients of outputs to those of the products.
  struct output_gradient {
    static constexpr std::size_t from = outputs, to = points;
    POSEIDON_WIDE_INLINE static void apply(const vector (&d)[from], vector (&t)[to]) {
      t[0] = d[0];
      const vector even1 = d[0] + d[2], odd1 = d[1] + d[3];
      t[1] = even1 + odd1;
      t[2] = even1 - odd1;
      const vector even2 = plus(d[0], 4.0f, d[2]), odd2 = plus(times(2.0f, d[1]), 8.0f, d[3]);
      t[3] = even2 + odd2;
      t[4] = even2 - odd2;
      const vector even3 = plus(d[0], 0.25f, d[2]), odd3 = plus(times(0.5f, d[1]), 0.125f, d[3]);
      t[5] = even3 + odd3;
      t[6] = even3 - odd3;
      t[7] = d[3];
    }
  };

  // What makes products at the points into coefficients again; all of it is on the side of the weights.
  static constexpr float scale1 = -2.0f / 9, scale2 = 1.0f / 90, scale3 = 32.0f / 45;

  /// Five weights to their scaled values at the points.
  struct weight_transform {
    static constexpr std::size_t from = taps, to = points;
    POSEIDON_WIDE_INLINE static void apply(const vector (&g)[from], vector (&t)[to]) {
      t[0] = g[0];
      const vector even1 = times(scale1, g[0] + g[2] + g[4]), odd1 = times(scale1, g[1] + g[3]);
      t[1] = even1 + odd1;
      t[2] = even1 - odd1;
      const vector even2 = times(scale2, plus(plus(g[0], 4.0f, g[2]), 16.0f, g[4]));
      const vector odd2 = times(scale2, plus(times(2.0f, g[1]), 8.0f, g[3]));
      t[3] = even2 + odd2;
      t[4] = even2 - odd2;
      const vector even3 = times(scale3, plus(plus(g[0], 0.25f, g[2]), 0.0625f, g[4]));
      const vector odd3 = times(scale3, plus(times(0.5f, g[1]), 0.125f, g[3]));
      t[5] = even3 + odd3;
      t[6] = even3 - odd3;
      t[7] = g[4];
    }
  };

  /// The transpose of weight_transform: gradients at the points to those of five weights.
  struct weight_gradient {
    static constexpr std::size_t from = points, to = taps;
    POSEIDON_WIDE_INLINE static void apply(const vector (&t)[from], vector (&g)[to]) {
      const vector even1 = times(scale1, t[1] + t[2]), odd1 = times(scale1, t[1] - t[2]);
      const vector even2 = times(scale2, t[3] + t[4]), odd2 = times(scale2, t[3] - t[4]);
      const vector even3 = times(scale3, t[5] + t[6]), odd3 = times(scale3, t[5] - t[6]);
      g[0] = (t[0] + even1) + (even2 + even3);
      g[1] = plus(plus(odd1, 2.0f, odd2), 0.5f, odd3);
      g[2] = plus(plus(even1, 4.0f, even2), 0.25f, even3);
      g[3] = plus(plus(odd1, 8.0f, odd2), 0.125f, odd3);
      g[4] = plus(plus(even1 + t[7], 16.0f, even2), 0.0625f, even3);
    }
  };
};

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
