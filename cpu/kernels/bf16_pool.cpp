#include "cpu/kernels/bf16_pool.hpp"

#include <algorithm>
#include <immintrin.h>

namespace poseidon::cpu {
namespace {

constexpr std::size_t block = 16;

// Functions that are compiled for AVX-512; a template has to be inlined into one of them.
#define POSEIDON_WIDE __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define POSEIDON_WIDE_INLINE POSEIDON_WIDE __attribute__((always_inline))

POSEIDON_WIDE_INLINE inline __m512 widened(const bfloat16* at) {
  const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}

POSEIDON_WIDE_INLINE inline void store_rounded(bfloat16* to, __m512 v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(v));
}

/// Of one of several values of bfloat16: nothing is rounded.
POSEIDON_WIDE_INLINE inline void store_exactly(bfloat16* to, __m512 v) {
  const __m512i upper = _mm512_srli_epi32(_mm512_castps_si512(v), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(upper));
}

/// Calls f(row, column, place in `of`, place of the other blob's block) for each block of each pixel of `of`; those blocks of a pixel that
/// lie side by side come one after the other.
template <class F>
POSEIDON_WIDE_INLINE inline void each_pixel(const bf16_images& of, int height, int width,
                                            const bf16_images& other, F f) {
  const bool is_blocked = of.places.pixel == block;
  const std::size_t walks = is_blocked ? of.places.blocks : 1,
                    together = is_blocked ? 1 : of.places.blocks;
  for (std::size_t n = 0; n < of.count; ++n)
    for (std::size_t b = 0; b < walks; ++b) {
      std::size_t place = n * of.places.image + b * of.places.block;
      const std::size_t there = n * other.places.image + b * other.places.block;
      for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column, place += of.places.pixel)
          for (std::size_t k = 0; k < together; ++k)
            f(row, column, place + k * block, there + k * block);
    }
}

/// Calls f(row, column) for the windows that hold a pixel, in their order.
template <class F>
POSEIDON_WIDE_INLINE inline void each_window(const pool_shape& s, int h, int c, F f) {
  const auto first = [](int at, int kernel, int stride) {
    return at < kernel ? 0 : (at - kernel + stride) / stride;
  };
  const int y = h + s.pad_h, x = c + s.pad_w;
  const int end_row = std::min(s.out_height, y / s.stride_h + 1),
            end_column = std::min(s.out_width, x / s.stride_w + 1);
  for (int row = first(y, s.kernel_h, s.stride_h); row < end_row; ++row)
    for (int column = first(x, s.kernel_w, s.stride_w); column < end_column; ++column)
      f(row, column);
}

/// Whether AVE divides all windows by the same number: then a pixel's gradient is divided once.
bool have_one_area(const pool_shape& s) {
  const float first = window_at(s, 0, 0).area;
  const int last_row = s.out_height - 1, last_column = s.out_width - 1;
  return first == window_at(s, last_row, last_column).area &&
         first == window_at(s, 0, last_column).area && first == window_at(s, last_row, 0).area;
}

}  // namespace

POSEIDON_WIDE void max_pool_forward(const pool_shape& s, const bf16_images& of_x, const bfloat16* x,
                                    const bf16_images& of_y, bfloat16* y, std::uint8_t* choice) {
  const std::size_t pixel = of_x.places.pixel;
  each_pixel(
      of_y, s.out_height, s.out_width, of_x,
      [&](int row, int column, std::size_t to, std::size_t from) POSEIDON_WIDE {
        const pool_window w = window_at(s, row, column);
        const auto tap = [&](int h, int c) {
          return (h - w.first_row) * s.kernel_w + c - w.first_column;
        };
        const bfloat16* const image = x + from;
        // From a value of the image, never from the padding: with NaNs the first choice may be the last.
        __m512 best = widened(image + (static_cast<std::size_t>(w.top) * s.width + w.left) * pixel);
        __m512i chosen = _mm512_set1_epi32(tap(w.top, w.left));
        for (int h = w.top; h < w.bottom; ++h)
          for (int c = w.left; c < w.right; ++c) {
            const __m512 v = widened(image + (static_cast<std::size_t>(h) * s.width + c) * pixel);
            const __mmask16 greater = _mm512_cmp_ps_mask(v, best, _CMP_GT_OQ);
            best = _mm512_mask_mov_ps(best, greater, v);
            chosen = _mm512_mask_mov_epi32(chosen, greater, _mm512_set1_epi32(tap(h, c)));
          }
        store_exactly(y + to, best);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(choice + to), _mm512_cvtepi32_epi8(chosen));
      });
}

POSEIDON_WIDE void max_pool_backward(const pool_shape& s, const bf16_images& of_dy,
                                     const bfloat16* dy, const std::uint8_t* choice,
                                     const bf16_images& of_dx, bfloat16* dx) {
  each_pixel(
      of_dx, s.height, s.width, of_dy,
      [&](int h, int c, std::size_t to, std::size_t from) POSEIDON_WIDE {
        __m512 sum = _mm512_setzero_ps();
        each_window(s, h, c, [&](int row, int column) POSEIDON_WIDE {
          const int tap =
              (h + s.pad_h - row * s.stride_h) * s.kernel_w + c + s.pad_w - column * s.stride_w;
          const std::size_t place =
              from + (static_cast<std::size_t>(row) * s.out_width + column) * of_dy.places.pixel;
          const __m128i chosen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(choice + place));
          const __mmask16 is_this =
              _mm_cmpeq_epi8_mask(chosen, _mm_set1_epi8(static_cast<char>(tap)));
          sum = _mm512_mask_add_ps(sum, is_this, sum, widened(dy + place));
        });
        store_rounded(dx + to, sum);
      });
}

POSEIDON_WIDE void ave_pool_forward(const pool_shape& s, const bf16_images& of_x, const bfloat16* x,
                                    const bf16_images& of_y, bfloat16* y) {
  each_pixel(of_y, s.out_height, s.out_width, of_x,
             [&](int row, int column, std::size_t to, std::size_t from) POSEIDON_WIDE {
               const pool_window w = window_at(s, row, column);
               __m512 sum = _mm512_setzero_ps();
               for (int h = w.top; h < w.bottom; ++h)
                 for (int c = w.left; c < w.right; ++c)
                   sum = _mm512_add_ps(sum, widened(x + from +
                                                    (static_cast<std::size_t>(h) * s.width + c) *
                                                        of_x.places.pixel));
               store_rounded(y + to, _mm512_div_ps(sum, _mm512_set1_ps(w.area)));
             });
}

POSEIDON_WIDE void ave_pool_backward(const pool_shape& s, const bf16_images& of_dy,
                                     const bfloat16* dy, const bf16_images& of_dx, bfloat16* dx) {
  const float area = window_at(s, 0, 0).area;
  const bool all_have_it = have_one_area(s);
  each_pixel(
      of_dx, s.height, s.width, of_dy,
      [&](int h, int c, std::size_t to, std::size_t from) POSEIDON_WIDE {
        __m512 sum = _mm512_setzero_ps();
        each_window(s, h, c, [&](int row, int column) POSEIDON_WIDE {
          const __m512 of_window =
              widened(dy + from +
                      (static_cast<std::size_t>(row) * s.out_width + column) * of_dy.places.pixel);
          sum = _mm512_add_ps(
              sum, all_have_it
                       ? of_window
                       : _mm512_div_ps(of_window, _mm512_set1_ps(window_at(s, row, column).area)));
        });
        if (all_have_it) sum = _mm512_div_ps(sum, _mm512_set1_ps(area));
        store_rounded(dx + to, sum);
      });
}

#undef POSEIDON_WIDE
#undef POSEIDON_WIDE_INLINE

}  // namespace poseidon::cpu
