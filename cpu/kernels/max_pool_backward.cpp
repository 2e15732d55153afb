// cpu/kernels/max_pool_backward.cpp - the gradient of max pooling: what each window's maximum gets, in the windows' order.
#include "cpu/kernels/max_pool.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

namespace poseidon::cpu {
namespace {

// -- from the windows: any stride -----------------------------------------------------------------------

template <int Block>
void scatter_window(const pool_shape& s, const pool_window& w, __m256 dy, __m256i at,
                    float* plane) {
  for (int h = w.top; h < w.bottom; ++h) {
    for (int c = w.left; c < w.right; ++c) {
      const __m256i tap = _mm256_set1_epi32((h - w.first_row) * s.kernel_w + (c - w.first_column));
      float* to = plane + (static_cast<std::size_t>(h) * s.width + c) * Block;
      const __m256 part = _mm256_and_ps(dy, _mm256_castsi256_ps(_mm256_cmpeq_epi32(at, tap)));
      _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), part));
    }
  }
}

template <int Block>
void scatter_plane(const pool_shape& s, const float* dy, const std::uint8_t* choice, float* dx) {
  std::memset(dx, 0, s.in_plane() * Block * sizeof(float));
  for (int row = 0; row < s.out_height; ++row) {
    for (int column = 0; column < s.out_width; ++column, dy += Block, choice += Block) {
      const pool_window w = window_at(s, row, column);
      for (int lane = 0; lane < Block; lane += 8) {
        const __m256i at =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(choice + lane)));
        scatter_window<Block>(s, w, _mm256_loadu_ps(dy + lane), at, dx + lane);
      }
    }
  }
}

// -- from the pixels: windows that overlap at every step ------------------------------------------------
// With stride 1 a window of k pixels overlaps k - 1 others at each of its pixels. Here each pixel's gradient is written
// once, with its windows added in their order: the bits are those of the loop above, which reads and writes the gradient
// once a window.

#define POSEIDON_WIDE __attribute__((target("avx512f,avx512bw,avx512vl"), always_inline)) inline

/// Adds what the window at `out` (an index of pixels of y) gives the pixel that is its `tap`.
POSEIDON_WIDE __m512 add_window(__m512 sum, const float* dy, const std::uint8_t* choice,
                                std::ptrdiff_t out, int tap) {
  const __m128i at = _mm_loadu_si128(reinterpret_cast<const __m128i*>(choice + out * 16));
  const __mmask16 chosen = _mm_cmpeq_epi8_mask(at, _mm_set1_epi8(static_cast<char>(tap)));
  return _mm512_mask_add_ps(sum, chosen, sum, _mm512_loadu_ps(dy + out * 16));
}

/// A pixel that all Kernel x Kernel windows around it hold; `out` is the last of them.
template <int Kernel>
POSEIDON_WIDE __m512 whole_pixel(const float* dy, const std::uint8_t* choice, std::ptrdiff_t out,
                                 std::ptrdiff_t row_step) {
  __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 9
  for (int tap = Kernel * Kernel - 1; tap >= 0; --tap)
    sum = add_window(sum, dy, choice, out - (tap / Kernel) * row_step - tap % Kernel, tap);
  return sum;
}

template <int Kernel>
__attribute__((target("avx512f,avx512bw,avx512vl"))) void gather_plane(const pool_shape& s,
                                                                       const float* dy,
                                                                       const std::uint8_t* choice,
                                                                       float* dx) {
  for (int h = 0; h < s.height; ++h) {
    // Windows begin at row - pad_h, so this pixel's are those of rows last_row - (Kernel - 1) to last_row.
    const int last_row = h + s.pad_h;
    const int top = std::max(0, last_row - (Kernel - 1)),
              bottom = std::min(s.out_height - 1, last_row);
    for (int w = 0; w < s.width; ++w, dx += 16) {
      const int last_column = w + s.pad_w;
      const int left = std::max(0, last_column - (Kernel - 1)),
                right = std::min(s.out_width - 1, last_column);
      if (bottom - top == Kernel - 1 && right - left == Kernel - 1) {
        const auto out = static_cast<std::ptrdiff_t>(last_row) * s.out_width + last_column;
        _mm512_storeu_ps(dx, whole_pixel<Kernel>(dy, choice, out, s.out_width));
        continue;
      }
      __m512 sum = _mm512_setzero_ps();
      for (int row = top; row <= bottom; ++row)
        for (int column = left; column <= right; ++column)
          sum = add_window(sum, dy, choice, static_cast<std::ptrdiff_t>(row) * s.out_width + column,
                           (last_row - row) * Kernel + (last_column - column));
      _mm512_storeu_ps(dx, sum);
    }
  }
}

#undef POSEIDON_WIDE

bool gathers(const pool_shape& s) {
  static const bool wide = __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return wide && s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == 1 && s.stride_w == 1;
}

}  // namespace

template <int Block>
void max_pool_backward(const pool_shape& s, std::size_t planes, const float* dy,
                       const std::uint8_t* choice, float* dx) {
  for (std::size_t p = 0; p < planes; ++p) {
    if (Block == 16 && gathers(s))
      gather_plane<3>(s, dy, choice, dx);
    else
      scatter_plane<Block>(s, dy, choice, dx);
    dy += s.out_plane() * Block;
    choice += s.out_plane() * Block;
    dx += s.in_plane() * Block;
  }
}

template void max_pool_backward<8>(const pool_shape&, std::size_t, const float*,
                                   const std::uint8_t*, float*);
template void max_pool_backward<16>(const pool_shape&, std::size_t, const float*,
                                    const std::uint8_t*, float*);

void max_pool_backward_plain(const pool_shape& s, std::size_t planes, const float* dy,
                             const std::int32_t* choice, float* dx) {
  std::memset(dx, 0, planes * s.in_plane() * sizeof(float));
  for (std::size_t p = 0; p < planes; ++p, dx += s.in_plane()) {
    for (std::size_t i = 0; i < s.out_plane(); ++i, ++dy, ++choice) {
      if (*choice >= 0) dx[*choice] += *dy;
    }
  }
}

}  // namespace poseidon::cpu
