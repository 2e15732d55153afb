// cpu/winograd/tile_transforms.hpp - the ways from blobs into values at the points, and back.
#pragma once
#include "cpu/winograd/tiles.hpp"

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

/// Scratch of the transformations: what a run of tiles sees, its columns transformed.
template <class Form>
struct strip {
  std::size_t step;  ///< floats of a row
  explicit strip(std::size_t tiles_at_once)
      : step((outputs * tiles_at_once + Form::points - outputs) * lanes) {}
  /// Rows at the points, and one of zeros behind them.
  [[nodiscard]] std::size_t size() const { return (Form::points + 1) * step; }
};

/// What a run of tiles sees of an image: its rows, those outside being zeros, and how many of the columns are
/// before, in and after the image.
template <std::size_t Rows, class T>
struct strip_source {
  const T* rows[Rows];
  std::size_t before = 0, columns = 0, after = 0;
};

/// The part of an image that tiles see which begin `pad` before it and are Rows inputs high and wide.
template <std::size_t Rows, class T>
strip_source<Rows, T> see(const winograd_image& image, std::size_t pad_h, std::size_t pad_w,
                          const tile_run& run, const T* plane, const T* zeros) {
  strip_source<Rows, T> s;
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
  for (std::size_t i = 0; i < vectors; ++i) store(to + i * lanes, spread(0));
}

/// Transforms a run of tiles, first down the columns, which neighbours share, then along the rows.
template <class Transform, class T>
POSEIDON_WIDE void transform_run(const strip_source<Transform::from, T>& s, std::size_t tiles,
                                 float* strip, std::size_t strip_step, float* to,
                                 std::size_t point_step) {
  constexpr std::size_t from = Transform::from, points = Transform::to;
  for (std::size_t p = 0; p < points; ++p) {
    clear(strip + p * strip_step, s.before);
    clear(strip + p * strip_step + (s.before + s.columns) * lanes, s.after);
  }
  float* column = strip + s.before * lanes;
  for (std::size_t c = 0; c < s.columns * lanes; c += lanes) {
    vector in[from], out[points];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < from; ++r) in[r] = load_unaligned(s.rows[r] + c);
    Transform::apply(in, out);
#pragma GCC unroll 8
    for (std::size_t p = 0; p < points; ++p) store(column + c + p * strip_step, out[p]);
  }
  for (std::size_t t = 0; t < tiles; ++t) {
    const float* tile = strip + t * outputs * lanes;
    for (std::size_t p = 0; p < points; ++p) {
      vector in[from], out[points];
#pragma GCC unroll 8
      for (std::size_t c = 0; c < from; ++c) in[c] = load(tile + p * strip_step + c * lanes);
      Transform::apply(in, out);
      float* at = to + p * points * point_step + t * lanes;
#pragma GCC unroll 8
      for (std::size_t q = 0; q < points; ++q) store(at + q * point_step, out[q]);
    }
  }
}

/// One tile's products to outputs, along one of two dimensions.
template <class Form>
POSEIDON_WIDE_INLINE void transform_outputs(const float* from, std::size_t point_step,
                                            vector (&half)[outputs][Form::points]) {
#pragma GCC unroll 8
  for (std::size_t q = 0; q < Form::points; ++q) {
    vector in[Form::points], out[outputs];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < Form::points; ++p)
      in[p] = load(from + (p * Form::points + q) * point_step);
    Form::output_transform::apply(in, out);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < outputs; ++r) half[r][q] = out[r];
  }
}

/// The other dimension: outputs [rows, columns) of a tile, `line` values from row to row.
template <class Form, class T>
POSEIDON_WIDE_INLINE void write_rows(const vector (&half)[outputs][Form::points], vector bias,
                                     float slope, std::size_t rows, std::size_t columns, T* y,
                                     std::size_t line) {
  for (std::size_t r = 0; r < rows; ++r, y += line) {
    vector out[outputs];
    Form::output_transform::apply(half[r], out);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < outputs; ++c) {
      if (c >= columns) break;
      store_unaligned(y + c * lanes, leaky(out[c] + bias, slope));
    }
  }
}

/// The products of a run of tiles to outputs of one block of channels.
template <class Form, class T>
POSEIDON_WIDE void write_run(const float* from, std::size_t point_step, const float* bias,
                             float slope, const tile_run& run, const winograd_image& image,
                             T* plane) {
  const vector b = load(bias);
  const std::size_t top = outputs * run.row, line = image.width * lanes;
  const std::size_t rows = std::min(outputs, image.height - top);
  for (std::size_t t = 0; t < run.count; ++t) {
    const std::size_t left = outputs * (run.column + t);
    vector half[outputs][Form::points];
    transform_outputs<Form>(from + t * lanes, point_step, half);
    write_rows<Form>(half, b, slope, rows, std::min(outputs, image.width - left),
                     plane + (top * image.width + left) * lanes, line);
  }
}

template <class Form, class Transform, class T>
void transform_tiles(const tile_range& tiles, const winograd_image& image, std::size_t pad_h,
                     std::size_t pad_w, const T* blob, float* scratch, float* to) {
  const spectrum s = tiles_of<Form>(image, tiles.at_once);
  const std::size_t step = strip<Form>(tiles.at_once).step;
  float* zeros = scratch + Form::points * step;
  std::fill_n(zeros, step, 0.0f);
  each_run(tiles, [&](const tile_run& run) {
    for (std::size_t block = 0; block < s.blocks; ++block) {
      const auto source =
          see<Transform::from>(image, pad_h, pad_w, run, plane_of(image, run.sample, block, blob),
                               reinterpret_cast<const T*>(zeros));
      transform_run<Transform>(source, run.count, scratch, step,
                               to + block * s.block_step() + run.at * lanes, s.point_step());
    }
  });
}

/// The inputs that tiles see to their values at the points, tiles_of(image). `scratch` has room for a strip.
template <class Form, class T>
void transform_inputs(const tile_range& tiles, const winograd_image& image, std::size_t pad_h,
                      std::size_t pad_w, const T* x, float* scratch, float* to) {
  transform_tiles<Form, typename Form::input_transform>(tiles, image, pad_h, pad_w, x, scratch, to);
}

/// The gradients of tiles' outputs to those of their products.
template <class Form, class T>
void transform_gradients(const tile_range& tiles, const T* dy, float* scratch, float* to) {
  transform_tiles<Form, typename Form::output_gradient>(tiles, tiles.tiled, 0, 0, dy, scratch, to);
}

/// Products of `blocks` blocks of channels from `first` on, m, to outputs; `bias` has a value for each lane of each block.
template <class Form, class T>
void write_outputs(const tile_range& tiles, std::size_t first, std::size_t blocks,
                   const spectrum& m, const float* products, const float* bias, float slope, T* y) {
  each_run(tiles, [&](const tile_run& run) {
    for (std::size_t b = 0; b < blocks; ++b)
      write_run<Form>(products + b * m.block_step() + run.at * lanes, m.point_step(),
                      bias + (first + b) * lanes, slope, run, tiles.tiled,
                      plane_of(tiles.tiled, run.sample, first + b, y));
  });
}

template <class T>
POSEIDON_WIDE inline void sum_plane(const T* plane, std::size_t size, float* sum) {
  vector s = load(sum);
  for (std::size_t i = 0; i < size; ++i) s += load_unaligned(plane + i * lanes);
  store(sum, s);
}

/// Sums of all gradients by channel, for each lane of each block.
template <class T>
void sum_planes(const winograd_shape& s, const T* dy, float* sums) {
  const std::size_t blocks = blocks_of(s.out.channels);
  std::fill_n(sums, blocks * lanes, 0.0f);
  for (std::size_t n = 0; n < s.samples; ++n)
    for (std::size_t b = 0; b < blocks; ++b)
      sum_plane(plane_of(s.out, n, b, dy), s.out.height * s.out.width, sums + b * lanes);
}

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
