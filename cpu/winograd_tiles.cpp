#include "cpu/winograd_tiles.hpp"

namespace poseidon::cpu::winograd {
namespace {

alignas(64) constexpr float zeros[strip_columns * lanes] = {};

/// What a run of tiles sees of an image: its rows, those outside being zeros, and how many of the columns are
/// before, in and after the image.
template <std::size_t Rows>
struct strip_source {
  const float* rows[Rows];
  std::size_t before = 0, columns = 0, after = 0;
};

/// The part of an image that tiles see which begin `pad` before it and are Rows inputs high and wide.
template <std::size_t Rows>
strip_source<Rows> see(const winograd_image& image, std::size_t pad_h, std::size_t pad_w,
                       const tile_run& run, const float* plane) {
  strip_source<Rows> s;
  const std::size_t wide = outputs * (run.count - 1) + Rows;
  const std::size_t left = outputs * run.column;  // counted with the padding, as `top`
  const std::size_t top = outputs * run.row;
  s.before = std::min(wide, pad_w > left ? pad_w - left : 0);
  const std::size_t begin = left + s.before - pad_w;
  s.columns = begin < image.width ? std::min(wide - s.before, image.width - begin) : 0;
  s.after = wide - s.before - s.columns;
  for (std::size_t r = 0; r < Rows; ++r) {
    const bool inside = top + r >= pad_h && top + r - pad_h < image.height;
    s.rows[r] = inside ? plane + ((top + r - pad_h) * image.width + begin) * lanes : zeros;
  }
  return s;
}

POSEIDON_WIDE_INLINE void clear(float* to, std::size_t vectors) {
  for (std::size_t i = 0; i < vectors; ++i) _mm512_store_ps(to + i * lanes, _mm512_setzero_ps());
}

/// Transforms a run of tiles, first down the columns, which neighbours share, then along the rows.
template <class Transform>
POSEIDON_WIDE void transform_run(const strip_source<Transform::from>& s, std::size_t tiles,
                                 float* strip, float* to, std::size_t point_step) {
  constexpr std::size_t from = Transform::from;
  for (std::size_t p = 0; p < points; ++p) {
    clear(strip + p * strip_step, s.before);
    clear(strip + p * strip_step + (s.before + s.columns) * lanes, s.after);
  }
  float* column = strip + s.before * lanes;
  for (std::size_t c = 0; c < s.columns * lanes; c += lanes) {
    __m512 in[from], out[points];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < from; ++r) in[r] = _mm512_loadu_ps(s.rows[r] + c);
    Transform::apply(in, out);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < points; ++p) _mm512_store_ps(column + c + p * strip_step, out[p]);
  }
  for (std::size_t t = 0; t < tiles; ++t) {
    const float* tile = strip + t * outputs * lanes;
    for (std::size_t p = 0; p < points; ++p) {
      __m512 in[from], out[points];
#pragma GCC unroll 8
      for (std::size_t c = 0; c < from; ++c)
        in[c] = _mm512_load_ps(tile + p * strip_step + c * lanes);
      Transform::apply(in, out);
      float* at = to + p * points * point_step + t * lanes;
#pragma GCC unroll 8
      for (std::size_t q = 0; q < points; ++q) _mm512_store_ps(at + q * point_step, out[q]);
    }
  }
}

/// One tile's products to outputs.
POSEIDON_WIDE_INLINE void transform_outputs(const float* from, std::size_t point_step,
                                            __m512 (&half)[outputs][points]) {
#pragma GCC unroll 8
  for (std::size_t q = 0; q < points; ++q) {
    __m512 in[points], out[outputs];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < points; ++p)
      in[p] = _mm512_load_ps(from + (p * points + q) * point_step);
    output_transform::apply(in, out);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < outputs; ++r) half[r][q] = out[r];
  }
}

/// The second half of the transformation of a tile: outputs [rows, columns) of it, `line` floats from row to row.
POSEIDON_WIDE_INLINE void write_rows(const __m512 (&half)[outputs][points], __m512 bias,
                                     float slope, std::size_t rows, std::size_t columns, float* y,
                                     std::size_t line) {
  for (std::size_t r = 0; r < rows; ++r, y += line) {
    __m512 out[outputs];
    output_transform::apply(half[r], out);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < outputs; ++c) {
      if (c >= columns) break;
      const __m512 v = out[c] + bias;
      const __mmask16 negative = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ);
      _mm512_storeu_ps(y + c * lanes, _mm512_mask_mul_ps(v, negative, v, _mm512_set1_ps(slope)));
    }
  }
}

/// The products of a run of tiles to outputs of one block of channels.
POSEIDON_WIDE void write_run(const float* from, std::size_t point_step, const float* bias,
                             float slope, const tile_run& run, const winograd_image& image,
                             float* plane) {
  const __m512 b = _mm512_load_ps(bias);
  const std::size_t top = outputs * run.row, line = image.width * lanes;
  const std::size_t rows = std::min(outputs, image.height - top);
  for (std::size_t t = 0; t < run.count; ++t) {
    const std::size_t left = outputs * (run.column + t);
    __m512 half[outputs][points];
    transform_outputs(from + t * lanes, point_step, half);
    write_rows(half, b, slope, rows, std::min(outputs, image.width - left),
               plane + (top * image.width + left) * lanes, line);
  }
}

template <class Transform>
void transform_tiles(const tile_range& tiles, const winograd_image& image, std::size_t pad_h,
                     std::size_t pad_w, const float* blob, float* strip, float* to) {
  const spectrum s = tiles_of(image);
  each_run(tiles, [&](const tile_run& run) {
    for (std::size_t block = 0; block < s.blocks; ++block) {
      const auto source =
          see<Transform::from>(image, pad_h, pad_w, run, plane_of(image, run.sample, block, blob));
      transform_run<Transform>(source, run.count, strip,
                               to + block * s.block_step() + run.at * lanes, s.point_step());
    }
  });
}

POSEIDON_WIDE void sum_plane(const float* plane, std::size_t size, float* sum) {
  __m512 s = _mm512_load_ps(sum);
  for (std::size_t i = 0; i < size; ++i) s += _mm512_loadu_ps(plane + i * lanes);
  _mm512_store_ps(sum, s);
}

}  // namespace

void prefetcher::add(const tile_range& tiles, const winograd_image& image, const float* blob) {
  each_run(tiles, [&](const tile_run& run) {
    const std::size_t left = outputs * run.column, top = outputs * run.row;
    if (left >= image.width) return;
    const std::size_t wide = std::min(outputs * run.count, image.width - left);
    for (std::size_t block = 0; block < blocks_of(image.channels); ++block) {
      const float* plane = plane_of(image, run.sample, block, blob);
      for (std::size_t row = top; row < std::min(top + outputs, image.height); ++row)
        pieces_.push_back({plane + (row * image.width + left) * lanes, wide * lanes});
    }
  });
}

void transform_inputs(const tile_range& tiles, const winograd_image& image, std::size_t pad_h,
                      std::size_t pad_w, const float* x, float* strip, float* to) {
  transform_tiles<input_transform>(tiles, image, pad_h, pad_w, x, strip, to);
}

void transform_gradients(const tile_range& tiles, const float* dy, float* strip, float* to) {
  transform_tiles<output_gradient>(tiles, tiles.tiled, 0, 0, dy, strip, to);
}

void write_outputs(const tile_range& tiles, const float* products, const float* bias, float slope,
                   float* y) {
  const spectrum m = tiles_of(tiles.tiled);
  each_run(tiles, [&](const tile_run& run) {
    for (std::size_t b = 0; b < m.blocks; ++b)
      write_run(products + b * m.block_step() + run.at * lanes, m.point_step(), bias + b * lanes,
                slope, run, tiles.tiled, plane_of(tiles.tiled, run.sample, b, y));
  });
}

void sum_planes(const winograd_shape& s, const float* dy, float* sums) {
  const std::size_t blocks = blocks_of(s.out.channels);
  std::fill_n(sums, blocks * lanes, 0.0f);
  for (std::size_t n = 0; n < s.samples; ++n)
    for (std::size_t b = 0; b < blocks; ++b)
      sum_plane(plane_of(s.out, n, b, dy), s.out.height * s.out.width, sums + b * lanes);
}

}  // namespace poseidon::cpu::winograd
