// cpu/winograd/tiles.hpp - how images are cut into tiles, some of which are worked at a time, and where their values lie.
#pragma once
#include "cpu/winograd/convolution.hpp"
#include "cpu/winograd/transforms.hpp"

#include <algorithm>
#include <vector>

namespace poseidon::cpu::winograd::POSEIDON_VECTORS {

inline std::size_t blocks_of(std::size_t channels) {
  return (channels + lanes - 1) / lanes;
}
inline std::size_t tiles_over(std::size_t extent) {
  return (extent + outputs - 1) / outputs;
}
inline std::size_t tiles_in(const winograd_shape& s) {
  return s.samples * tiles_over(s.out.height) * tiles_over(s.out.width);
}

/// Transformed values: [point][block][row][lane].
struct spectrum {
  std::size_t points, blocks, rows;
  [[nodiscard]] std::size_t block_step() const { return rows * lanes; }
  /// An odd number of cache lines, else all points of a tile would compete for the same few places of the caches.
  [[nodiscard]] std::size_t point_step() const {
    constexpr std::size_t line = 64 / sizeof(float);
    return ((blocks * block_step() + line - 1) / line | 1) * line;
  }
  [[nodiscard]] std::size_t size() const { return points * point_step(); }
};
/// The spectrum of the tiles that are computed at a time.
template <class Form>
spectrum tiles_of(const winograd_image& i, std::size_t tiles) {
  return {Form::points * Form::points, blocks_of(i.channels), tiles};
}
/// The spectrum of weights that lead from `rows` channels to `columns`.
template <class Form>
spectrum weights_of(std::size_t rows, std::size_t columns) {
  return {Form::points * Form::points, blocks_of(columns), blocks_of(rows) * lanes};
}

/// Some of the weights: from channels [row, row + rows) to those of blocks of columns [block, block + blocks).
struct weight_part {
  std::size_t row, rows, block, blocks;
};
template <class Form>
spectrum weights_of(const weight_part& p) {
  return {Form::points * Form::points, p.blocks, blocks_of(p.rows) * lanes};
}

/// What is worked at a time, so that it stays in the caches.
struct portions {
  std::size_t tiles;
  std::size_t rows, blocks;  ///< of the weights; all of them where `whole`
  bool whole;
};

/// All weights, transformed once, and few tiles where the weights are so few that each group of tiles may read them again
/// from the third-level cache. Else many tiles, and parts of the weights that are transformed, used and forgotten: each group of
/// tiles transforms all weights anew, which takes about as long as the products of eight tiles.
template <class Form>
portions portions_of(const winograd_shape& s) {
  const std::size_t tile = tiles_of<Form>(s.in, 1).size() + tiles_of<Form>(s.out, 1).size();
  const std::size_t rows = s.in.channels, blocks = blocks_of(s.out.channels);
  portions p{fewest_at_once, rows, blocks,
             weights_of<Form>(rows, s.out.channels).size() <= most_whole_weights};
  if (!p.whole) {
    static_assert(rows_of_part % lanes == 0, "inputs lie in blocks, which no part may cut");
    p.tiles = std::max(p.tiles, std::min(most_at_once, most_tile_floats / tile));
    p.rows = std::min(rows, rows_of_part);
    p.blocks = std::min(blocks, blocks_of_part);
  }
  const std::size_t all = tiles_in(s), ranges = (all + p.tiles - 1) / p.tiles;
  constexpr std::size_t step = 8;  // a multiple of rows_at_once
  p.tiles = ((all + ranges - 1) / ranges + step - 1) / step * step;
  return p;
}

/// `count` tiles from `first` on, among all that the outputs `tiled` are cut into; at most `at_once`.
struct tile_range {
  winograd_image tiled;
  std::size_t at_once, first, count;
};

/// Tiles side by side in one image, with their places among the tiles at once.
struct tile_run {
  std::size_t sample, row, column, count, at;
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

/// Planes of a block of channels, as blobs hold them.
template <class T>
T* plane_of(const winograd_image& i, std::size_t sample, std::size_t block, T* blob) {
  return blob + sample * i.sample_step + block * i.height * i.width * lanes;
}

/// Memory of blobs that tiles will touch, brought near in small parts while there are products to compute: tiles
/// take short pieces from many places, which processors do not foresee.
class prefetcher {
 public:
  void clear() { pieces_.clear(); }
  /// What lies at the places of the tiles' outputs in a blob of such images.
  template <class T>
  void add(const tile_range& tiles, const winograd_image& image, const T* blob) {
    each_run(tiles, [&](const tile_run& run) {
      const std::size_t left = outputs * run.column, top = outputs * run.row;
      if (left >= image.width) return;
      const std::size_t wide = std::min(outputs * run.count, image.width - left);
      for (std::size_t block = 0; block < blocks_of(image.channels); ++block) {
        const T* plane = plane_of(image, run.sample, block, blob);
        for (std::size_t row = top; row < std::min(top + outputs, image.height); ++row)
          pieces_.push_back(
              {reinterpret_cast<const char*>(plane + (row * image.width + left) * lanes),
               wide * lanes * sizeof(T)});
      }
    });
  }
  /// One of `parts`. (Inlined by force, or GCC takes it for a function without effects.)
  __attribute__((always_inline)) void part(std::size_t which, std::size_t parts) const {
    const std::size_t end = pieces_.size() * (which + 1) / parts;
    for (std::size_t i = pieces_.size() * which / parts; i < end; ++i)
      for (std::size_t b = 0; b < pieces_[i].bytes; b += 64)
        _mm_prefetch(pieces_[i].at + b, _MM_HINT_T1);
  }

 private:
  struct piece {
    const char* at;
    std::size_t bytes;
  };
  std::vector<piece> pieces_;
};

}  // namespace poseidon::cpu::winograd::POSEIDON_VECTORS
