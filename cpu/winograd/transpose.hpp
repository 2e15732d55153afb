// cpu/winograd/transpose.hpp - windows of weights to vectors of channels, and back.
//
// Caffe keeps the taps of a window side by side; vectors hold one tap of several channels. The way between the two is a
// transposition in registers: copying value by value took longer than the transforms themselves.
#pragma once
#include "cpu/winograd/vectors.hpp"

#include <algorithm>

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// Exchanges rows and columns of a square of values.
POSEIDON_WIDE_INLINE void transpose(vector (&v)[lanes]) {
  vector pairs[lanes];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < lanes; i += 2) {
    pairs[i] = interleave_low(v[i], v[i + 1]);
    pairs[i + 1] = interleave_high(v[i], v[i + 1]);
  }
  vector quarters[lanes];  // [4 i + j]: column j of each 128 bits, of the rows from 4 i on
#pragma GCC unroll 4
  for (std::size_t i = 0; i < lanes; i += 4) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < 2; ++j) {
      quarters[i + 2 * j] = interleave_low_pairs(pairs[i + j], pairs[i + j + 2]);
      quarters[i + 2 * j + 1] = interleave_high_pairs(pairs[i + j], pairs[i + j + 2]);
    }
  }
  transpose_quarters(quarters, v);
}

/// Reads `count` windows of `Taps` values, `step` floats apart: to[tap][lane] = window of that lane at that tap. The lanes
/// behind `count` become zeros.
template <std::size_t Taps, std::size_t First = 0>
POSEIDON_WIDE_INLINE void load_windows(const float* from, std::size_t step, std::size_t count,
                                       vector (&to)[Taps]) {
  vector square[lanes];
#pragma GCC unroll 16
  for (std::size_t lane = 0; lane < lanes; ++lane)
    square[lane] = lane < count ? load_first(from + lane * step + First, Taps - First) : spread(0);
  transpose(square);
  constexpr std::size_t here = std::min(Taps - First, lanes);
#pragma GCC unroll 16
  for (std::size_t tap = 0; tap < here; ++tap) to[First + tap] = square[tap];
  if constexpr (First + lanes < Taps) load_windows<Taps, First + lanes>(from, step, count, to);
}

/// The way back: writes `count` windows, or adds to them.
template <std::size_t Taps, std::size_t First = 0>
POSEIDON_WIDE_INLINE void store_windows(const vector (&from)[Taps], float* to, std::size_t step,
                                        std::size_t count, bool add) {
  constexpr std::size_t here = std::min(Taps - First, lanes);
  vector square[lanes];
#pragma GCC unroll 16
  for (std::size_t tap = 0; tap < lanes; ++tap)
    square[tap] = tap < here ? from[First + std::min(tap, here - 1)] : spread(0);
  transpose(square);
#pragma GCC unroll 16
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (lane >= count) continue;
    float* at = to + lane * step + First;
    store_first(at, here, add ? load_first(at, here) + square[lane] : square[lane]);
  }
  if constexpr (First + lanes < Taps)
    store_windows<Taps, First + lanes>(from, to, step, count, add);
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
