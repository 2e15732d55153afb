#include "gpu/kernels/pooling.hpp"
#include "gpu/map.hpp"
#include "models/random.hpp"

#include <cfloat>

namespace poseidon::gpu {
namespace {

/// The part of a window that lies inside the image, and the size that AVE divides by.
struct window {
  int top, bottom, left, right;  // rows [top, bottom), columns [left, right)
  float area;
};

POSEIDON_HOST_DEVICE inline int larger(int a, int b) {
  return a > b ? a : b;
}
POSEIDON_HOST_DEVICE inline int smaller(int a, int b) {
  return a < b ? a : b;
}

POSEIDON_HOST_DEVICE inline window window_of(const pool_shape& p, int row, int column) {
  const int first_row = row * p.stride_h - p.pad_h, first_column = column * p.stride_w - p.pad_w;
  const int end_row = smaller(first_row + p.kernel_h, p.height + p.pad_h);
  const int end_column = smaller(first_column + p.kernel_w, p.width + p.pad_w);
  return {larger(first_row, 0), smaller(end_row, p.height), larger(first_column, 0),
          smaller(end_column, p.width),
          static_cast<float>((end_row - first_row) * (end_column - first_column))};
}

/// Values of a plane of `area` values: the first, and the steps to those behind it.
struct plane_values {
  std::size_t first;
  index step;
  POSEIDON_HOST_DEVICE std::size_t at(int place) const {
    return first + std::size_t{static_cast<index>(place)} * step;
  }
};
/// A place of a plane, in which planes lie as pool_planes says.
struct place_of_plane {
  index outer, inner, count;  // planes before it, beside it, and how many are side by side
  int place;
  [[nodiscard]] POSEIDON_HOST_DEVICE plane_values plane(int area) const {
    return {std::size_t{outer} * static_cast<index>(area) * count + inner, count};
  }
};
POSEIDON_HOST_DEVICE inline place_of_plane place_of(index i, index area, index inner) {
  const index q = i / inner;
  return {q / area, i % inner, inner, static_cast<int>(q % area)};
}

/// An output: its plane of inputs, and its window there.
struct output {
  plane_values plane;
  window over;
};
POSEIDON_HOST_DEVICE inline output output_of(const pool_shape& p, index inner, index i) {
  const place_of_plane o = place_of(i, static_cast<index>(p.out_height * p.out_width), inner);
  return {o.plane(p.height * p.width), window_of(p, o.place / p.out_width, o.place % p.out_width)};
}

/// A pixel: its plane of outputs, itself, and those whose windows hold it, rows [top, bottom), columns [left, right).
struct pixel {
  plane_values plane;
  int row, column, top, bottom, left, right;
};
POSEIDON_HOST_DEVICE inline pixel pixel_of(const pool_shape& p, index inner, index i) {
  const place_of_plane at = place_of(i, static_cast<index>(p.height * p.width), inner);
  const int row = at.place / p.width, column = at.place % p.width;
  const int r = row + p.pad_h,
            c = column + p.pad_w;  // window k covers [k stride, k stride + kernel)
  return {at.plane(p.out_height * p.out_width),
          row,
          column,
          r < p.kernel_h ? 0 : (r - p.kernel_h) / p.stride_h + 1,
          smaller(r / p.stride_h + 1, p.out_height),
          c < p.kernel_w ? 0 : (c - p.kernel_w) / p.stride_w + 1,
          smaller(c / p.stride_w + 1, p.out_width)};
}

template <class T>
void max_pool_of(stream& s, const pool_shape& shape, const pool_planes& planes, const T* x, T* y,
                 std::int32_t* choice) {
  const pool_shape p = shape;
  const index inner = to_index(planes.inner);
  for_each(s, planes.values(p.out_plane()), [=] POSEIDON_DEVICE(index i) {
    const output o = output_of(p, inner, i);
    float best = -FLT_MAX;
    std::int32_t at = -1;
    for (int h = o.over.top; h < o.over.bottom; ++h) {
      for (int w = o.over.left; w < o.over.right; ++w) {
        const float v = to_float(x[o.plane.at(h * p.width + w)]);
        if (v > best) best = v, at = h * p.width + w;
      }
    }
    y[i] = round_to<T>(best);
    choice[i] = at;
  });
}

template <class T>
void spread_to_choice_of(stream& s, const pool_shape& shape, const pool_planes& planes,
                         const std::int32_t* choice, const T* dy, T* dx) {
  const pool_shape p = shape;
  const index inner = to_index(planes.inner);
  for_each(s, planes.values(p.in_plane()), [=] POSEIDON_DEVICE(index i) {
    const pixel at = pixel_of(p, inner, i);
    const std::int32_t own = at.row * p.width + at.column;
    float sum = 0;
    for (int h = at.top; h < at.bottom; ++h) {
      for (int w = at.left; w < at.right; ++w) {
        const std::size_t o = at.plane.at(h * p.out_width + w);
        if (choice[o] == own) sum += to_float(dy[o]);
      }
    }
    dx[i] = round_to<T>(sum);
  });
}

template <class T>
void ave_pool_of(stream& s, const pool_shape& shape, const pool_planes& planes, const T* x, T* y) {
  const pool_shape p = shape;
  const index inner = to_index(planes.inner);
  for_each(s, planes.values(p.out_plane()), [=] POSEIDON_DEVICE(index i) {
    const output o = output_of(p, inner, i);
    float sum = 0;
    for (int h = o.over.top; h < o.over.bottom; ++h) {
      for (int w = o.over.left; w < o.over.right; ++w)
        sum += to_float(x[o.plane.at(h * p.width + w)]);
    }
    y[i] = round_to<T>(sum / o.over.area);
  });
}

template <class T>
void ave_pool_backward_of(stream& s, const pool_shape& shape, const pool_planes& planes,
                          const T* dy, T* dx) {
  const pool_shape p = shape;
  const index inner = to_index(planes.inner);
  for_each(s, planes.values(p.in_plane()), [=] POSEIDON_DEVICE(index i) {
    const pixel at = pixel_of(p, inner, i);
    float sum = 0;
    for (int h = at.top; h < at.bottom; ++h) {
      for (int w = at.left; w < at.right; ++w) {
        sum += to_float(dy[at.plane.at(h * p.out_width + w)]) / window_of(p, h, w).area;
      }
    }
    dx[i] = round_to<T>(sum);
  });
}

template <class T>
void weighted_pool_of(stream& s, const pool_shape& shape, const pool_planes& planes, const T* x,
                      T* y) {
  const pool_shape p = shape;
  const index inner = to_index(planes.inner);
  for_each(s, planes.values(p.out_plane()), [=] POSEIDON_DEVICE(index i) {
    const output o = output_of(p, inner, i);
    float weights = FLT_MIN, sum = 0;  // so that a window of zeros gives zero
    for (int h = o.over.top; h < o.over.bottom; ++h) {
      for (int w = o.over.left; w < o.over.right; ++w) {
        const float v = to_float(x[o.plane.at(h * p.width + w)]);
        weights += v;
        sum += v * v;
      }
    }
    y[i] = round_to<T>(sum / weights);
  });
}

}  // namespace

void max_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x, values y,
              std::int32_t* choice) {
  with_type_of(x, [&](auto one) { max_pool_of<decltype(one)>(s, p, planes, x, y, choice); });
}

void spread_to_choice(stream& s, const pool_shape& p, const pool_planes& planes,
                      const std::int32_t* choice, const_values dy, values dx) {
  with_type_of(dy,
               [&](auto one) { spread_to_choice_of<decltype(one)>(s, p, planes, choice, dy, dx); });
}

void ave_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x, values y) {
  with_type_of(x, [&](auto one) { ave_pool_of<decltype(one)>(s, p, planes, x, y); });
}

void ave_pool_backward(stream& s, const pool_shape& p, const pool_planes& planes, const_values dy,
                       values dx) {
  with_type_of(dy, [&](auto one) { ave_pool_backward_of<decltype(one)>(s, p, planes, dy, dx); });
}

void weighted_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x,
                   values y) {
  with_type_of(x, [&](auto one) { weighted_pool_of<decltype(one)>(s, p, planes, x, y); });
}

void draw_pool(stream& s, const pool_draw& draw, const pool_shape& shape, std::size_t samples,
               std::size_t channels, const float* x, float* y, std::int32_t* choice) {
  const pool_shape p = shape;
  const pool_draw d = draw;
  const index per_sample = to_index(channels * p.out_plane());
  for_each(s, samples * per_sample, [=] POSEIDON_DEVICE(index i) {
    const output o = output_of(p, 1, i);
    const index within = i % per_sample;
    const auto words = random_words(d.seed, random_use::pooling, d.layer,
                                    d.first_sample + i / per_sample, within / 4);
    float whole = 0, sum = 0;
    for (int h = o.over.top; h < o.over.bottom; ++h) {
      for (int w = o.over.left; w < o.over.right; ++w) whole += x[o.plane.at(h * p.width + w)];
    }
    // The first place where the running sum reaches the drawn part of the whole, or the last of all.
    const float goal = unit_float(words[within % 4]) * whole;
    std::int32_t at = 0;
    bool found = false;
    for (int h = o.over.top; h < o.over.bottom && !found; ++h) {
      for (int w = o.over.left; w < o.over.right && !found; ++w) {
        at = h * p.width + w;
        sum += x[o.plane.at(at)];
        found = sum >= goal;
      }
    }
    y[i] = x[o.plane.at(at)];
    choice[i] = at;
  });
}

}  // namespace poseidon::gpu
