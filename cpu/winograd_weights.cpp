#include "cpu/winograd_weights.hpp"

namespace poseidon::cpu::winograd {
namespace {

/// Both dimensions of a square of vectors, [Transform::from]^2 at `from` to [Transform::to]^2 at `to`.
template <class Transform>
POSEIDON_WIDE void transform_square(const float* from, std::size_t from_step, float* to,
                                    std::size_t to_step) {
  constexpr std::size_t n = Transform::from, m = Transform::to;
  __m512 half[n][m];
  for (std::size_t r = 0; r < n; ++r) {
    __m512 in[n];
#pragma GCC unroll 8
    for (std::size_t c = 0; c < n; ++c) in[c] = _mm512_load_ps(from + (r * n + c) * from_step);
    Transform::apply(in, half[r]);
  }
  for (std::size_t q = 0; q < m; ++q) {
    __m512 in[n], out[m];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < n; ++r) in[r] = half[r][q];
    Transform::apply(in, out);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < m; ++p) _mm512_store_ps(to + (p * m + q) * to_step, out[p]);
  }
}

}  // namespace

void spread_weights(const weight_order& o, const float* weights, float* to) {
  const spectrum s = weights_of(o.rows, o.columns);
  alignas(64) float windows[all_taps * lanes] = {};
  for (std::size_t block = 0; block < s.blocks; ++block) {
    const std::size_t here = std::min(lanes, o.columns - block * lanes);
    if (here < lanes) std::fill_n(windows, all_taps * lanes, 0.0f);
    for (std::size_t row = 0; row < o.rows; ++row) {
      for (std::size_t lane = 0; lane < here; ++lane) {
        const float* w = weights + row * o.row_step + (block * lanes + lane) * o.column_step;
        for (std::size_t tap = 0; tap < all_taps; ++tap)
          windows[tap * lanes + lane] = w[o.turned ? all_taps - 1 - tap : tap];
      }
      transform_square<weight_transform>(windows, lanes, to + block * s.block_step() + row * lanes,
                                         s.point_step());
    }
  }
}

void gather_gradient(const weight_order& o, const float* from, float* gradient) {
  const spectrum s = weights_of(o.rows, o.columns);
  alignas(64) float windows[all_taps * lanes];
  for (std::size_t block = 0; block < s.blocks; ++block) {
    const std::size_t here = std::min(lanes, o.columns - block * lanes);
    for (std::size_t row = 0; row < o.rows; ++row) {
      transform_square<weight_gradient>(from + block * s.block_step() + row * lanes, s.point_step(),
                                        windows, lanes);
      for (std::size_t lane = 0; lane < here; ++lane) {
        float* g = gradient + row * o.row_step + (block * lanes + lane) * o.column_step;
        for (std::size_t tap = 0; tap < all_taps; ++tap) g[tap] = windows[tap * lanes + lane];
      }
    }
  }
}

}  // namespace poseidon::cpu::winograd
