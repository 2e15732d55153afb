// cpu/winograd/weights.hpp - Caffe's weights to their values at the points, and gradients back.
#pragma once
#include "cpu/winograd/tiles.hpp"

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

/// Both dimensions of a square of vectors, [Transform::from]^2 at `from` to [Transform::to]^2 at `to`.
template <class Transform>
POSEIDON_WIDE void transform_square(const float* from, std::size_t from_step, float* to,
                                    std::size_t to_step) {
  constexpr std::size_t n = Transform::from, m = Transform::to;
  vector half[n][m];
  for (std::size_t r = 0; r < n; ++r) {
    vector in[n];
#pragma GCC unroll 8
    for (std::size_t c = 0; c < n; ++c) in[c] = load(from + (r * n + c) * from_step);
    Transform::apply(in, half[r]);
  }
  for (std::size_t q = 0; q < m; ++q) {
    vector in[n], out[m];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < n; ++r) in[r] = half[r][q];
    Transform::apply(in, out);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < m; ++p) store(to + (p * m + q) * to_step, out[p]);
  }
}

/// Writes   weights_of(o.rows, o.columns).
template <class Form>
void spread_weights(const weight_order& o, const float* weights, float* to) {
  constexpr std::size_t taps = Form::taps * Form::taps;
  const spectrum s = weights_of<Form>(o.rows, o.columns);
  alignas(64) float windows[taps * lanes] = {};
  for (std::size_t block = 0; block < s.blocks; ++block) {
    const std::size_t here = std::min(lanes, o.columns - block * lanes);
    if (here < lanes) std::fill_n(windows, taps * lanes, 0.0f);
    for (std::size_t row = 0; row < o.rows; ++row) {
      for (std::size_t lane = 0; lane < here; ++lane) {
        const float* w = weights + row * o.row_step + (block * lanes + lane) * o.column_step;
        for (std::size_t tap = 0; tap < taps; ++tap)
          windows[tap * lanes + lane] = w[o.turned ? taps - 1 - tap : tap];
      }
      transform_square<typename Form::weight_transform>(
          windows, lanes, to + block * s.block_step() + row * lanes, s.point_step());
    }
  }
}

/// The gradient of every weight from those of weights_of(o.rows, o.columns).
template <class Form>
void gather_gradient(const weight_order& o, const float* from, float* gradient) {
  constexpr std::size_t taps = Form::taps * Form::taps;
  const spectrum s = weights_of<Form>(o.rows, o.columns);
  alignas(64) float windows[taps * lanes];
  for (std::size_t block = 0; block < s.blocks; ++block) {
    const std::size_t here = std::min(lanes, o.columns - block * lanes);
    for (std::size_t row = 0; row < o.rows; ++row) {
      transform_square<typename Form::weight_gradient>(from + block * s.block_step() + row * lanes,
                                                       s.point_step(), windows, lanes);
      for (std::size_t lane = 0; lane < here; ++lane) {
        float* g = gradient + row * o.row_step + (block * lanes + lane) * o.column_step;
        for (std::size_t tap = 0; tap < taps; ++tap) g[tap] = windows[tap * lanes + lane];
      }
    }
  }
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
