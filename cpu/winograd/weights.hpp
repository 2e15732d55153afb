// cpu/winograd/weights.hpp - Caffe's weights to their values at the points, and gradients back.
#pragma once
#include "cpu/winograd/tiles.hpp"
#include "cpu/winograd/transpose.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// Where one weight of Caffe's [out, in, taps, taps] lies, seen as a matrix [rows, columns] of windows.
struct weight_order {
  std::size_t rows, columns, row_step, column_step;
  bool turned;  ///< by 180 degrees
};
template <class Form>
weight_order forward_order(const winograd_shape& s) {
  constexpr std::size_t window = Form::taps * Form::taps;
  return {s.in.channels, s.out.channels, window, s.in.channels * window, false};
}
template <class Form>
weight_order backward_order(const winograd_shape& s) {
  constexpr std::size_t window = Form::taps * Form::taps;
  return {s.out.channels, s.in.channels, s.in.channels * window, window, true};
}

/// Both dimensions of a square of vectors.
template <class Transform>
POSEIDON_WIDE_INLINE void transform_square(const vector (&from)[Transform::from * Transform::from],
                                           vector (&half)[Transform::from][Transform::to]) {
  constexpr std::size_t n = Transform::from;
#pragma GCC unroll 8
  for (std::size_t r = 0; r < n; ++r) {
    vector in[n];
#pragma GCC unroll 8
    for (std::size_t c = 0; c < n; ++c) in[c] = from[r * n + c];
    Transform::apply(in, half[r]);
  }
}

/// Column `q` of what that leaves.
template <class Transform>
POSEIDON_WIDE_INLINE void transform_column(const vector (&half)[Transform::from][Transform::to],
                                           std::size_t q, vector (&out)[Transform::to]) {
  vector in[Transform::from];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < Transform::from; ++r) in[r] = half[r][q];
  Transform::apply(in, out);
}

/// The windows of `count` columns, `step` floats apart, to their values at the points.
template <class Form>
POSEIDON_WIDE void spread_windows(const float* from, std::size_t step, std::size_t count,
                                  bool turned, float* to, std::size_t point_step) {
  using transform = typename Form::weight_transform;
  constexpr std::size_t taps = Form::taps * Form::taps, points = Form::points;
  vector read[taps], windows[taps], half[Form::taps][points];
  load_windows(from, step, count, read);
#pragma GCC unroll 25
  for (std::size_t tap = 0; tap < taps; ++tap) windows[tap] = read[turned ? taps - 1 - tap : tap];
  transform_square<transform>(windows, half);
#pragma GCC unroll 8
  for (std::size_t q = 0; q < points; ++q) {
    vector out[points];
    transform_column<transform>(half, q, out);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < points; ++p) store(to + (p * points + q) * point_step, out[p]);
  }
}

/// The way back: gradients at the points to those of the windows.
template <class Form>
POSEIDON_WIDE void gather_windows(const float* from, std::size_t point_step, float* to,
                                  std::size_t step, std::size_t count, bool add) {
  using transform = typename Form::weight_gradient;
  constexpr std::size_t taps = Form::taps, points = Form::points;
  vector half[points][taps], windows[taps * taps];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < points; ++r) {
    vector in[points];
#pragma GCC unroll 8
    for (std::size_t c = 0; c < points; ++c) in[c] = load(from + (r * points + c) * point_step);
    transform::apply(in, half[r]);
  }
#pragma GCC unroll 8
  for (std::size_t q = 0; q < taps; ++q) {
    vector out[taps];
    transform_column<transform>(half, q, out);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < taps; ++p) windows[p * taps + q] = out[p];
  }
  store_windows(windows, to, step, count, add);
}

/// Calls f(floats to a row of windows in Caffe's weights, columns there, floats to its values at the first point).
template <class F>
void each_windows(const weight_order& o, const weight_part& p, const spectrum& s, F f) {
  for (std::size_t block = 0; block < p.blocks; ++block) {
    const std::size_t column = (p.block + block) * lanes;
    const std::size_t here = std::min(lanes, o.columns - column);
    for (std::size_t row = 0; row < p.rows; ++row)
      f((p.row + row) * o.row_step + column * o.column_step, here,
        block * s.block_step() + row * lanes);
  }
}

/// Writes   weights_of(p).
template <class Form>
void spread_weights(const weight_order& o, const weight_part& p, const float* weights, float* to) {
  const spectrum s = weights_of<Form>(p);
  each_windows(o, p, s, [&](std::size_t at, std::size_t columns, std::size_t value) {
    spread_windows<Form>(weights + at, o.column_step, columns, o.turned, to + value,
                         s.point_step());
  });
}

/// The gradient of these weights from those of weights_of(p); it is added to what `gradient` holds if `add`.
template <class Form>
void gather_gradient(const weight_order& o, const weight_part& p, const float* from,
                     float* gradient, bool add) {
  const spectrum s = weights_of<Form>(p);
  each_windows(o, p, s, [&](std::size_t at, std::size_t columns, std::size_t value) {
    gather_windows<Form>(from + value, s.point_step(), gradient + at, o.column_step, columns, add);
  });
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
