#include "gpu/kernels/pooling.hpp"
#include "gpu/runtime/divisor.hpp"
#include "gpu/runtime/map.hpp"
#include "models/random.hpp"

#include <cfloat>
#include <initializer_list>
#include <type_traits>

namespace poseidon::gpu {
namespace {

struct rectangle {
  int top, bottom, left, right;  ///< rows [top, bottom), columns [left, right)
};
/// Calls f(row, column) for each place of an area with these bounds, row by row.
template <class Bounds, class F>
POSEIDON_HOST_DEVICE inline void visit(const Bounds& r, const F& f) {
  for (int h = r.top; h < r.bottom; ++h) {
    for (int w = r.left; w < r.right; ++w) f(h, w);
  }
}

POSEIDON_HOST_DEVICE inline int smaller(int a, int b) {
  return a < b ? a : b;
}

/// The values of a plane: the place of the first, and the step from each to the next.
struct plane_values {
  std::size_t first;
  index step;
  POSEIDON_HOST_DEVICE std::size_t at(int place) const {
    return first + std::size_t{static_cast<index>(place)} * step;
  }
};

/// The values that one thread computes: the same place in `side` planes that lie side by side.
struct spot {
  std::size_t first;  ///< place of these values among all
  index outer, inner;
  int row, column;
};

/// The distribution of the places of planes (width times height) to threads; each thread takes `side` neighbouring planes.
class grid {
 public:
  grid(const pool_planes& planes, int height, int width, index side)
      : side_(side),
        groups_(to_index(planes.inner) / side),
        area_(static_cast<index>(height * width)),
        width_(static_cast<index>(width)),
        threads_(planes.values(static_cast<std::size_t>(height) * static_cast<std::size_t>(width)) /
                 side) {
    (void)to_index(threads_ * side);
  }

  [[nodiscard]] std::size_t threads() const { return threads_; }
  [[nodiscard]] POSEIDON_HOST_DEVICE spot of(index thread) const {
    const index all = groups_.quotient(thread), outer = area_.quotient(all);
    const index place = all - outer * area_.by(), row = width_.quotient(place);
    return {std::size_t{thread} * side_, outer, (thread - all * groups_.by()) * side_,
            static_cast<int>(row), static_cast<int>(place - row * width_.by())};
  }
  /// The plane of `area` values that belongs to a spot in another grid of the same planes.
  [[nodiscard]] POSEIDON_HOST_DEVICE plane_values plane(const spot& at, int area) const {
    const index step = groups_.by() * side_;
    return {std::size_t{at.outer} * static_cast<index>(area) * step + at.inner, step};
  }

 private:
  index side_;
  divisor groups_, area_, width_;
  std::size_t threads_;
};

class strides {
 public:
  explicit strides(const pool_shape& p)
      : down_(static_cast<index>(p.stride_h)), right_(static_cast<index>(p.stride_w)) {}
  /// The windows that hold a pixel: window k covers [k stride, k stride + kernel) of the padded image.
  [[nodiscard]] POSEIDON_HOST_DEVICE rectangle of(const pool_shape& p, const spot& at) const {
    const int r = at.row + p.pad_h, c = at.column + p.pad_w;
    return {r < p.kernel_h ? 0 : steps(down_, r - p.kernel_h) + 1,
            smaller(steps(down_, r) + 1, p.out_height),
            c < p.kernel_w ? 0 : steps(right_, c - p.kernel_w) + 1,
            smaller(steps(right_, c) + 1, p.out_width)};
  }

 private:
  [[nodiscard]] POSEIDON_HOST_DEVICE static int steps(const divisor& by, int way) {
    return static_cast<int>(by.quotient(static_cast<index>(way)));
  }
  divisor down_, right_;
};

/// Places in a plane, of N neighbours.
template <index N>
struct alignas(N == 1 ? 4 : 16) places {
  std::int32_t v[N];
};

/// Calls run(T{}, width) for values of x's type. `width` is the number of neighbouring values per thread: a pack where the
/// planes and the alignment of all memory allow it, else 1.
template <class Run>
void in_packs(const pool_planes& planes, const const_values& x,
              std::initializer_list<const void*> memory, const Run& run) {
  with_type_of(x, [&](auto one) {
    using T = decltype(one);
    constexpr index width = pack<T>::width;
    if (planes.inner % width == 0 && are_aligned({x.at()}) && are_aligned(memory))
      run(one, std::integral_constant<index, width>{});
    else
      run(one, std::integral_constant<index, 1>{});
  });
}

template <index N, class T>
void max_pool_of(stream& s, const pool_shape& shape, const pool_planes& planes, const T* x, T* y,
                 std::int32_t* choice, bool only_positive) {
  const pool_shape p = shape;
  const grid g(planes, p.out_height, p.out_width, N);
  for_each(s, g.threads(), [=] POSEIDON_DEVICE(index thread) {
    const spot o = g.of(thread);
    const plane_values in = g.plane(o, p.height * p.width);
    const pool_window over = window_at(p, o.row, o.column);
    floats<N> best;
    places<N> at;
    for (index k = 0; k < N; ++k) best.v[k] = -FLT_MAX, at.v[k] = -1;
    visit(over, [&](int h, int w) {
      const int place = h * p.width + w;
      const auto v = load<N>(x + in.at(place));
      for (index k = 0; k < N; ++k) {
        if (v.v[k] > best.v[k]) best.v[k] = v.v[k], at.v[k] = place;
      }
    });
    store(y + o.first, best);
    for (index k = 0; k < N; ++k) {
      if (only_positive && !(best.v[k] > 0)) at.v[k] = -1;
    }
    *reinterpret_cast<places<N>*>(choice + o.first) = at;
  });
}

template <index N, class T>
void spread_to_choice_of(stream& s, const pool_shape& shape, const pool_planes& planes,
                         const std::int32_t* choice, const T* dy, T* dx) {
  const pool_shape p = shape;
  const grid g(planes, p.height, p.width, N);
  const strides by(p);
  for_each(s, g.threads(), [=] POSEIDON_DEVICE(index thread) {
    const spot at = g.of(thread);
    const plane_values out = g.plane(at, p.out_height * p.out_width);
    const rectangle in = by.of(p, at);
    const std::int32_t own = at.row * p.width + at.column;
    floats<N> sum{};
    visit(in, [&](int h, int w) {
      const std::size_t o = out.at(h * p.out_width + w);
      const auto chosen = *reinterpret_cast<const places<N>*>(choice + o);
      const auto v = load<N>(dy + o);
      for (index k = 0; k < N; ++k) {
        if (chosen.v[k] == own) sum.v[k] += v.v[k];
      }
    });
    store(dx + at.first, sum);
  });
}

template <index N, class T>
void ave_pool_of(stream& s, const pool_shape& shape, const pool_planes& planes, const T* x, T* y) {
  const pool_shape p = shape;
  const grid g(planes, p.out_height, p.out_width, N);
  for_each(s, g.threads(), [=] POSEIDON_DEVICE(index thread) {
    const spot o = g.of(thread);
    const plane_values in = g.plane(o, p.height * p.width);
    const pool_window over = window_at(p, o.row, o.column);
    floats<N> sum{};
    visit(over, [&](int h, int w) {
      const auto v = load<N>(x + in.at(h * p.width + w));
      for (index k = 0; k < N; ++k) sum.v[k] += v.v[k];
    });
    for (index k = 0; k < N; ++k) sum.v[k] /= over.area;
    store(y + o.first, sum);
  });
}

template <index N, class T>
void ave_pool_backward_of(stream& s, const pool_shape& shape, const pool_planes& planes,
                          const T* dy, T* dx) {
  const pool_shape p = shape;
  const grid g(planes, p.height, p.width, N);
  const strides by(p);
  for_each(s, g.threads(), [=] POSEIDON_DEVICE(index thread) {
    const spot at = g.of(thread);
    const plane_values out = g.plane(at, p.out_height * p.out_width);
    const rectangle in = by.of(p, at);
    floats<N> sum{};
    visit(in, [&](int h, int w) {
      const float area = window_at(p, h, w).area;
      const auto v = load<N>(dy + out.at(h * p.out_width + w));
      for (index k = 0; k < N; ++k) sum.v[k] += v.v[k] / area;
    });
    store(dx + at.first, sum);
  });
}

template <class T>
void weighted_pool_of(stream& s, const pool_shape& shape, const pool_planes& planes, const T* x,
                      T* y) {
  const pool_shape p = shape;
  const grid g(planes, p.out_height, p.out_width, 1);
  for_each(s, g.threads(), [=] POSEIDON_DEVICE(index thread) {
    const spot o = g.of(thread);
    const plane_values in = g.plane(o, p.height * p.width);
    const pool_window over = window_at(p, o.row, o.column);
    float weights = FLT_MIN, sum = 0;  // so that a window of zeros gives zero
    visit(over, [&](int h, int w) {
      const float v = to_float(x[in.at(h * p.width + w)]);
      weights += v;
      sum += v * v;
    });
    y[thread] = round_to<T>(sum / weights);
  });
}

}  // namespace

void max_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x, values y,
              std::int32_t* choice, bool only_positive) {
  in_packs(planes, x, {y.at(), choice}, [&](auto one, auto side) {
    max_pool_of<side, decltype(one)>(s, p, planes, x, y, choice, only_positive);
  });
}

void spread_to_choice(stream& s, const pool_shape& p, const pool_planes& planes,
                      const std::int32_t* choice, const_values dy, values dx) {
  in_packs(planes, dy, {choice, dx.at()}, [&](auto one, auto side) {
    spread_to_choice_of<side, decltype(one)>(s, p, planes, choice, dy, dx);
  });
}

void ave_pool(stream& s, const pool_shape& p, const pool_planes& planes, const_values x, values y) {
  in_packs(planes, x, {y.at()},
           [&](auto one, auto side) { ave_pool_of<side, decltype(one)>(s, p, planes, x, y); });
}

void ave_pool_backward(stream& s, const pool_shape& p, const pool_planes& planes, const_values dy,
                       values dx) {
  in_packs(planes, dy, {dx.at()}, [&](auto one, auto side) {
    ave_pool_backward_of<side, decltype(one)>(s, p, planes, dy, dx);
  });
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
  const grid g({samples * channels, 1}, p.out_height, p.out_width, 1);
  for_each(s, g.threads(), [=] POSEIDON_DEVICE(index i) {
    const spot o = g.of(i);
    const plane_values in = g.plane(o, p.height * p.width);
    const pool_window over = window_at(p, o.row, o.column);
    const index within = i % per_sample;
    const auto words = random_words(d.seed, random_use::pooling, d.layer,
                                    d.first_sample + i / per_sample, within / 4);
    float whole = 0, sum = 0;
    visit(over, [&](int h, int w) { whole += x[in.at(h * p.width + w)]; });
    // The first place where the running sum reaches the drawn part of the whole, or the last of all.
    const float goal = unit_float(words[within % 4]) * whole;
    std::int32_t at = 0;
    bool found = false;
    for (int h = over.top; h < over.bottom && !found; ++h) {
      for (int w = over.left; w < over.right && !found; ++w) {
        at = h * p.width + w;
        sum += x[in.at(at)];
        found = sum >= goal;
      }
    }
    y[i] = x[in.at(at)];
    choice[i] = at;
  });
}

}  // namespace poseidon::gpu
