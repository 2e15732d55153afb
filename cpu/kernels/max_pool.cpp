#include "cpu/kernels/max_pool.hpp"

#include <algorithm>
#include <cfloat>
#include <immintrin.h>

namespace poseidon::cpu {
namespace {

/// Eight 32-bit integers below 256 as eight bytes.
void store_bytes(std::uint8_t* to, __m256i v) {
  __m128i b = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  b = _mm_packus_epi16(b, b);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), b);
}

/// One window of eight channels; its size is fixed, so that the taps unroll.
template <int Block, int Kernel>
void whole_window(const float* x, std::size_t row_step, float* y, std::uint8_t* choice) {
  __m256 best = _mm256_loadu_ps(x);
  __m256 at = _mm256_setzero_ps();
#pragma GCC unroll 9
  for (int tap = 1; tap < Kernel * Kernel; ++tap) {
    const __m256 v = _mm256_loadu_ps(x + (tap / Kernel) * row_step + (tap % Kernel) * Block);
    const __m256 greater = _mm256_cmp_ps(v, best, _CMP_GT_OQ);
    best = _mm256_max_ps(v, best);
    at = _mm256_blendv_ps(at, _mm256_castsi256_ps(_mm256_set1_epi32(tap)), greater);
  }
  _mm256_storeu_ps(y, best);
  store_bytes(choice, _mm256_castps_si256(at));
}

template <int Block>
void cut_window(const pool_shape& s, const pool_window& w, const float* plane, float* y,
                std::uint8_t* choice) {
  // Starts from a value of the image, never from the padding: with NaNs the first choice may be the
  // last.
  const int first = (w.top - w.first_row) * s.kernel_w + (w.left - w.first_column);
  __m256 best =
      _mm256_loadu_ps(plane + (static_cast<std::size_t>(w.top) * s.width + w.left) * Block);
  __m256 at = _mm256_castsi256_ps(_mm256_set1_epi32(first));
  for (int h = w.top; h < w.bottom; ++h) {
    for (int c = w.left; c < w.right; ++c) {
      const __m256 v = _mm256_loadu_ps(plane + (static_cast<std::size_t>(h) * s.width + c) * Block);
      const __m256 greater = _mm256_cmp_ps(v, best, _CMP_GT_OQ);
      const int tap = (h - w.first_row) * s.kernel_w + (c - w.first_column);
      best = _mm256_blendv_ps(best, v, greater);
      at = _mm256_blendv_ps(at, _mm256_castsi256_ps(_mm256_set1_epi32(tap)), greater);
    }
  }
  _mm256_storeu_ps(y, best);
  store_bytes(choice, _mm256_castps_si256(at));
}

/// `count` windows of sixteen channels, one after the other in a row of windows.
template <int Kernel>
__attribute__((target("avx512f"))) void whole_windows_wide(const float* x, std::size_t row_step,
                                                           std::size_t step, int count, float* y,
                                                           std::uint8_t* choice) {
  for (int i = 0; i < count; ++i, x += step, y += 16, choice += 16) {
    __m512 best = _mm512_loadu_ps(x);
    __m512i at = _mm512_setzero_si512();
#pragma GCC unroll 9
    for (int tap = 1; tap < Kernel * Kernel; ++tap) {
      const __m512 v = _mm512_loadu_ps(x + (tap / Kernel) * row_step + (tap % Kernel) * 16);
      const __mmask16 greater = _mm512_cmp_ps_mask(v, best, _CMP_GT_OQ);
      best = _mm512_mask_mov_ps(best, greater, v);
      at = _mm512_mask_mov_epi32(at, greater, _mm512_set1_epi32(tap));
    }
    _mm512_storeu_ps(y, best);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(choice), _mm512_cvtepi32_epi8(at));
  }
}

template <int Block, int Kernel>
void whole_windows(const float* x, std::size_t row_step, std::size_t step, int count, float* y,
                   std::uint8_t* choice) {
  static const bool wide = __builtin_cpu_supports("avx512f");
  if constexpr (Block == 16)
    if (wide) return whole_windows_wide<Kernel>(x, row_step, step, count, y, choice);
  for (int i = 0; i < count; ++i, x += step, y += Block, choice += Block)
    for (int lane = 0; lane < Block; lane += 8)
      whole_window<Block, Kernel>(x + lane, row_step, y + lane, choice + lane);
}

/// Kernel > 0: the size of square windows; those that lie in the image have loops of their own.
template <int Block, int Kernel>
void forward_planes(const pool_shape& s, std::size_t planes, const float* x, float* y,
                    std::uint8_t* choice) {
  const std::size_t row_step = static_cast<std::size_t>(s.width) * Block;
  for (std::size_t p = 0; p < planes; ++p, x += s.in_plane() * Block) {
    for (int row = 0; row < s.out_height; ++row) {
      const int h = row * s.stride_h - s.pad_h;
      const bool whole_rows = Kernel > 0 && h >= 0 && h + Kernel <= s.height;
      for (int column = 0, done = 0; column < s.out_width;
           column += done, y += done * Block, choice += done * Block) {
        const int w = column * s.stride_w - s.pad_w;
        done = 1;
        if constexpr (Kernel > 0) {
          if (whole_rows && w >= 0 && w + Kernel <= s.width) {
            done = std::min((s.width - Kernel - w) / s.stride_w + 1, s.out_width - column);
            whole_windows<Block, Kernel>(x + h * row_step + static_cast<std::size_t>(w) * Block,
                                         row_step, static_cast<std::size_t>(s.stride_w) * Block,
                                         done, y, choice);
            continue;
          }
        }
        for (int lane = 0; lane < Block; lane += 8)
          cut_window<Block>(s, window_at(s, row, column), x + lane, y + lane, choice + lane);
      }
    }
  }
}

}  // namespace

template <int Block>
void max_pool_forward(const pool_shape& s, std::size_t planes, const float* x, float* y,
                      std::uint8_t* choice) {
  if (s.kernel_h == 2 && s.kernel_w == 2) {
    forward_planes<Block, 2>(s, planes, x, y, choice);
  } else if (s.kernel_h == 3 && s.kernel_w == 3) {
    forward_planes<Block, 3>(s, planes, x, y, choice);
  } else {
    forward_planes<Block, 0>(s, planes, x, y, choice);
  }
}

template void max_pool_forward<8>(const pool_shape&, std::size_t, const float*, float*,
                                  std::uint8_t*);
template void max_pool_forward<16>(const pool_shape&, std::size_t, const float*, float*,
                                   std::uint8_t*);
void max_pool_forward_plain(const pool_shape& s, std::size_t planes, const float* x, float* y,
                            std::int32_t* choice) {
  for (std::size_t p = 0; p < planes; ++p, x += s.in_plane()) {
    for (int row = 0; row < s.out_height; ++row) {
      for (int column = 0; column < s.out_width; ++column) {
        const pool_window w = window_at(s, row, column);
        float best = -FLT_MAX;
        std::int32_t at = -1;
        for (int h = w.top; h < w.bottom; ++h) {
          for (int c = w.left; c < w.right; ++c) {
            const float v = x[static_cast<std::size_t>(h) * s.width + c];
            if (v > best) best = v, at = h * s.width + c;
          }
        }
        *y++ = best;
        *choice++ = at;
      }
    }
  }
}

}  // namespace poseidon::cpu
