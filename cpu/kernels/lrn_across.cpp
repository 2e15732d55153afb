// A column is what lies side by side of all channels: one pixel, or eight in the plain layout. It is read as
// segments of one block of channels, or one channel, and becomes a row whose neighbouring channels are `step_` floats apart, so
// that sums over neighbours are sums of shifted vectors, with zeros before and behind the row.
//
// Columns are worked on in tiles, one stage after the other: a vector that is read across two that were written a moment ago
// has to wait for both.
#include "cpu/kernels/lrn_across.hpp"

#include "cpu/channels.hpp"

#include <algorithm>
#include <cmath>

namespace poseidon::cpu {
namespace {

using vector = eight;
constexpr std::size_t vector_size = 8, most_columns = 16;
// Bytes of the first cache that a tile's rows may take.
constexpr std::size_t cache = std::size_t{24} << 10;

template <bool Whole, class T>
vector read(const T* from, std::size_t live) {
  if constexpr (Whole) return load<vector>(from);
  float values[vector_size] = {};
  std::copy_n(from, live, values);
  return load<vector>(values);
}

template <bool Whole, class T>
void write(T* to, vector v, std::size_t live) {
  if constexpr (Whole) return store(to, v);
  float values[vector_size];
  store(values, v);
  std::copy_n(values, live, to);
}

vector square_root(vector v) {
  for (std::size_t i = 0; i < vector_size; ++i) v[i] = std::sqrt(v[i]);
  return v;
}

/// s^-beta, and that divided by s.
struct powers {
  vector power, share;
};

/// For beta = 3/4, the usual one.
struct three_quarters {
  powers operator()(vector s) const {
    const vector inverse = 1.0f / square_root(square_root(s)), square = inverse * inverse;
    return {square * inverse, square * square * square * inverse};
  }
};

struct any_power {
  float beta;
  [[gnu::noinline]] powers operator()(vector s) const {
    vector power;
    for (std::size_t i = 0; i < vector_size; ++i) power[i] = std::pow(s[i], -beta);
    return {power, power / s};
  }
};

std::size_t whole_vectors(std::size_t floats) {
  return (floats + vector_size - 1) / vector_size * vector_size;
}

}  // namespace

struct lrn_across::column {
  std::size_t first;  ///< place of its first value in a blob
  std::size_t live;   ///< pixels, fewer than a vector at the end of a plane in the plain layout
  std::size_t row;    ///< place of its row's first value
};

lrn_across::lrn_across(layout form, const image_extent& extent, const numbers& with)
    : extent_(extent), with_(with), weight_(with.alpha / static_cast<float>(with.size)) {
  const std::size_t block = block_of(form);
  const bool plain = block == 1;
  places_ = places_of(form, extent);
  width_ = plain ? vector_size : block;
  step_ = plain ? vector_size : 1;
  reach_ = (with.size - 1) / 2;
  front_ = whole_vectors(reach_ * step_);
  row_ = front_ + places_.blocks * width_ + front_;
  tile_ = std::clamp(cache / (3 * row_ * sizeof(float)), std::size_t{1}, most_columns);
  for (buffer* b : {&squares_, &shares_, &powers_}) *b = buffer(tile_ * row_);
}

/// Calls f.operator()<Whole>(columns, how many, what makes powers) for every tile.
template <class F>
void lrn_across::each_tile(F f) {
  const bool plain = step_ != 1;
  const std::size_t pixels = plain ? vector_size : 1;
  column columns[most_columns];
  for (std::size_t n = 0; n < extent_.samples; ++n) {
    const std::size_t image = n * places_.image;
    for (std::size_t p = 0; p < extent_.plane;) {
      std::size_t count = 0;
      // The last pixels of a plane, too few for a vector, are a tile of their own.
      const bool whole = !plain || p + vector_size <= extent_.plane;
      do {
        const std::size_t live = std::min(pixels, extent_.plane - p);
        columns[count] = {image + p * places_.pixel, live, count * row_ + front_};
        ++count;
        p += live;
      } while (count < tile_ && whole && p + pixels <= extent_.plane);
      const auto with = [&](auto power) {
        whole ? f.template operator()<true>(columns, count, power)
              : f.template operator()<false>(columns, count, power);
      };
      with_.beta == 0.75f ? with(three_quarters{}) : with(any_power{with_.beta});
    }
  }
}

template <bool Whole, class T>
void lrn_across::write_squares(const column& c, const T* x) {
  float* to = squares_.data() + c.row;
  for (std::size_t s = 0; s < places_.blocks; ++s)
    for (std::size_t i = 0; i < width_; i += vector_size, to += vector_size) {
      const vector v = read<Whole>(x + c.first + s * places_.block + i, c.live);
      store(to, v * v);
    }
}

namespace {

/// The sum over neighbours, in the order of their channels.
vector sum_around(const float* at, std::size_t reach, std::size_t step) {
  at -= reach * step;
  vector sum = load<vector>(at);
  for (std::size_t d = 0; d < 2 * reach; ++d) sum += load<vector>(at += step);
  return sum;
}

}  // namespace

template <bool Whole, class Power, class T>
void lrn_across::write_results(const column& c, Power power_of, const T* x, T* y) {
  const float* squares = squares_.data() + c.row;
  for (std::size_t s = 0; s < places_.blocks; ++s)
    for (std::size_t i = 0; i < width_; i += vector_size, squares += vector_size) {
      const std::size_t at = c.first + s * places_.block + i;
      const vector sum = with_.k + weight_ * sum_around(squares, reach_, step_);
      write<Whole>(y + at, read<Whole>(x + at, c.live) * power_of(sum).power, c.live);
    }
}

/// What each result says about its neighbours' x, but for those: dy y / s.
template <bool Whole, class Power, class T>
void lrn_across::write_shares(const column& c, Power power_of, const T* x, const T* dy) {
  std::size_t place = c.row;
  for (std::size_t s = 0; s < places_.blocks; ++s)
    for (std::size_t i = 0; i < width_; i += vector_size, place += vector_size) {
      const std::size_t at = c.first + s * places_.block + i;
      const vector sum = with_.k + weight_ * sum_around(squares_.data() + place, reach_, step_);
      const powers p = power_of(sum);
      store(powers_.data() + place, p.power);
      store(shares_.data() + place,
            read<Whole>(dy + at, c.live) * read<Whole>(x + at, c.live) * p.share);
    }
}

template <bool Whole, class T>
void lrn_across::write_gradients(const column& c, const T* x, const T* dy, T* dx) {
  const float ratio = 2 * weight_ * with_.beta;
  std::size_t place = c.row;
  for (std::size_t s = 0; s < places_.blocks; ++s)
    for (std::size_t i = 0; i < width_; i += vector_size, place += vector_size) {
      const std::size_t at = c.first + s * places_.block + i;
      const vector shares = sum_around(shares_.data() + place, reach_, step_);
      const vector power = load<vector>(powers_.data() + place);
      write<Whole>(
          dx + at,
          read<Whole>(dy + at, c.live) * power - ratio * read<Whole>(x + at, c.live) * shares,
          c.live);
    }
}

template <class T>
void lrn_across::forward(const T* x, T* y) {
  each_tile([&]<bool Whole>(const column* columns, std::size_t count, auto power) {
    for (std::size_t i = 0; i < count; ++i) write_squares<Whole>(columns[i], x);
    for (std::size_t i = 0; i < count; ++i) write_results<Whole>(columns[i], power, x, y);
  });
}

template <class T>
void lrn_across::backward(const T* x, const T* dy, T* dx) {
  each_tile([&]<bool Whole>(const column* columns, std::size_t count, auto power) {
    for (std::size_t i = 0; i < count; ++i) write_squares<Whole>(columns[i], x);
    for (std::size_t i = 0; i < count; ++i) write_shares<Whole>(columns[i], power, x, dy);
    for (std::size_t i = 0; i < count; ++i) write_gradients<Whole>(columns[i], x, dy, dx);
  });
}

template void lrn_across::forward(const float*, float*);
template void lrn_across::backward(const float*, const float*, float*);
template void lrn_across::forward(const bfloat16*, bfloat16*);
template void lrn_across::backward(const bfloat16*, const bfloat16*, bfloat16*);

}  // namespace poseidon::cpu
