// cpu/winograd_tiles.hpp
//
// How winograd.hpp cuts images into tiles, a few of which are worked at a time, and the ways into transformed
// values and back.
#pragma once
#include "cpu/winograd.hpp"
#include "cpu/winograd_transform.hpp"

#include <algorithm>
#include <vector>

namespace poseidon::cpu::winograd {

constexpr std::size_t tiles_at_once = 16;
constexpr std::size_t all_points = points * points;
constexpr std::size_t all_taps = taps * taps;

inline std::size_t blocks_of(std::size_t channels) {
  return (channels + lanes - 1) / lanes;
}
inline std::size_t tiles_over(std::size_t extent) {
  return (extent + outputs - 1) / outputs;
}

/// Transformed values: [point][block][row][lane]. Points lie an odd number of cache lines apart, else all of
/// a tile's would compete for the same few places of the caches.
struct spectrum {
  std::size_t blocks, rows;
  [[nodiscard]] std::size_t block_step() const { return rows * lanes; }
  [[nodiscard]] std::size_t point_step() const { return (blocks * rows | 1) * lanes; }
  [[nodiscard]] std::size_t size() const { return all_points * point_step(); }
};
inline spectrum tiles_of(const winograd_image& i) {
  return {blocks_of(i.channels), tiles_at_once};
}
/// Of weights that lead from `rows` channels to `columns`.
inline spectrum weights_of(std::size_t rows, std::size_t columns) {
  return {blocks_of(columns), blocks_of(rows) * lanes};
}

/// Tiles side by side in one image, with their places among the tiles at once.
struct tile_run {
  std::size_t sample, row, column, count, at;
};

/// Planes of sixteen channels, as blobs hold them.
template <class Float>
Float* plane_of(const winograd_image& i, std::size_t sample, std::size_t block, Float* blob) {
  return blob + sample * i.sample_step + block * i.height * i.width * lanes;
}

inline std::size_t tiles_in(const winograd_shape& s) {
  return s.samples * tiles_over(s.out.height) * tiles_over(s.out.width);
}

/// Which tiles: `count` ones from `first` on, of all that the outputs `tiled` are cut into.
struct tile_range {
  winograd_image tiled;
  std::size_t first, count;
};

/// Calls f(run) for all of them, row by row.
template <class F>
void each_run(const tile_range& tiles, F f) {
  const std::size_t across = tiles_over(tiles.tiled.width), down = tiles_over(tiles.tiled.height);
  for (std::size_t at = 0; at < tiles.count;) {
    const std::size_t tile = tiles.first + at, column = tile % across;
    const std::size_t here = std::min(across - column, tiles.count - at);
    f(tile_run{tile / across / down, tile / across % down, column, here, at});
    at += here;
  }
}

/// Memory of blobs that tiles will touch, brought near in small parts while there are products to compute: tiles
/// take short pieces from many places, which processors do not foresee.
class prefetcher {
 public:
  void clear() { pieces_.clear(); }
  /// What lies at the places of the tiles' outputs in a blob of such images.
  void add(const tile_range& tiles, const winograd_image& image, const float* blob);
  /// One of all_points parts. (Inlined by force, or GCC takes it for a function without effects.)
  __attribute__((always_inline)) void part(std::size_t point) const {
    const std::size_t end = pieces_.size() * (point + 1) / all_points;
    for (std::size_t i = pieces_.size() * point / all_points; i < end; ++i)
      for (std::size_t f = 0; f < pieces_[i].floats; f += lanes)
        _mm_prefetch(pieces_[i].at + f, _MM_HINT_T1);
  }

 private:
  struct piece {
    const float* at;
    std::size_t floats;
  };
  std::vector<piece> pieces_;
};

constexpr std::size_t strip_columns = outputs * tiles_at_once + window - outputs;
constexpr std::size_t strip_step = strip_columns * lanes;
constexpr std::size_t strip_floats = points * strip_step;  ///< scratch of the two transformations

/// The inputs that tiles see to their values at the points, tiles_of(image).
void transform_inputs(const tile_range& tiles, const winograd_image& image, std::size_t pad_h,
                      std::size_t pad_w, const float* x, float* strip, float* to);
/// The gradients of tiles' outputs to those of their products.
void transform_gradients(const tile_range& tiles, const float* dy, float* strip, float* to);
/// Products to outputs; `bias` has a value for each lane of each block.
void write_outputs(const tile_range& tiles, const float* products, const float* bias, float slope,
                   float* y);

/// Sums of all gradients by channel, for each lane of each block.
void sum_planes(const winograd_shape& s, const float* dy, float* sums);

}  // namespace poseidon::cpu::winograd
