#include "gpu/kernels/lrn.hpp"
#include "gpu/runtime/divisor.hpp"
#include "gpu/runtime/map.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

/// Plain numbers for the kernels.
struct neighbours {
  int channels, height, width, reach;
  index plane;  // values from channel to channel
  bool within_channel;
};

neighbours neighbours_of(const lrn_shape& l) {
  return {static_cast<int>(l.over.channels),
          l.height,
          l.width,
          (l.size - 1) / 2,
          to_index(l.over.plane),
          l.within_channel};
}

/// Sum of f(place) over the neighbours of place i.
template <class F>
POSEIDON_HOST_DEVICE inline float sum_around(const neighbours& n, index i, const F& f) {
  float sum = 0;
  if (n.within_channel) {
    const auto place = static_cast<int>(i % n.plane);
    const index plane = i - static_cast<index>(place);
    const int row = place / n.width, column = place % n.width;
    for (int h = row - n.reach; h <= row + n.reach; ++h) {
      for (int w = column - n.reach; w <= column + n.reach; ++w) {
        if (h >= 0 && h < n.height && w >= 0 && w < n.width)
          sum += f(plane + static_cast<index>(h * n.width + w));
      }
    }
    return sum;
  }
  const auto channel = static_cast<int>(i / n.plane % static_cast<index>(n.channels));
  for (int c = channel - n.reach; c <= channel + n.reach; ++c) {
    if (c >= 0 && c < n.channels) sum += f(i + static_cast<index>(c - channel) * n.plane);
  }
  return sum;
}

template <class T>
struct square_of {
  const T* x;
  POSEIDON_HOST_DEVICE float operator()(index i) const {
    const float v = to_float(x[i]);
    return v * v;
  }
};

/// The derivative of a neighbour's result by one of its inputs, without the factor of that input itself.
template <class T>
struct share_of {
  const T *dy, *y;
  const float* sums;
  POSEIDON_HOST_DEVICE float operator()(index i) const {
    return to_float(dy[i]) * to_float(y[i]) / sums[i];
  }
};

/// s^-beta; square roots, as on the CPU, are less work than a power.
struct falling_power {
  explicit falling_power(float by) : beta(by), three_quarters(by == 0.75f) {}
  POSEIDON_DEVICE float operator()(float s) const {
    if (!three_quarters) return std::pow(s, -beta);
    const float inverse = 1 / std::sqrt(std::sqrt(s));
    return inverse * inverse * inverse;
  }
  float beta;
  bool three_quarters;
};

/// alpha / n
float weight_of(const lrn_shape& l) {
  return l.alpha / static_cast<float>(l.within_channel ? l.size * l.size : l.size);
}

template <class T>
void forward(stream& s, const lrn_shape& l, const T* x, T* y, float* sums) {
  const neighbours n = neighbours_of(l);
  const float weight = weight_of(l), k = l.k;
  const falling_power power(l.beta);
  for_each(s, l.over.values(), [=] POSEIDON_DEVICE(index i) {
    const float sum = k + weight * sum_around(n, i, square_of<T>{x});
    sums[i] = sum;
    y[i] = round_to<T>(to_float(x[i]) * power(sum));
  });
}

template <class T>
void backward(stream& s, const lrn_shape& l, const T* x, const T* y, const float* sums, const T* dy,
              T* dx) {
  const neighbours n = neighbours_of(l);
  const float ratio = 2 * weight_of(l) * l.beta;
  const falling_power power(l.beta);
  for_each(s, l.over.values(), [=] POSEIDON_DEVICE(index i) {
    const float own = to_float(dy[i]) * power(sums[i]);
    dx[i] = round_to<T>(own - ratio * to_float(x[i]) * sum_around(n, i, share_of<T>{dy, y, sums}));
  });
}

// Across channels that lie side by side a thread takes a pack of them, and what their neighbours beyond either end have.
constexpr int usual_size = 5;
constexpr index reach = usual_size / 2;

template <index N>
struct with_ends {
  float v[reach + N + reach];
};
/// f(load) of N channels and those beside them, zeros where there are none; `load` gives f's values from a channel on, its
/// argument being the distance from the first of the N.
template <index N, class Load>
POSEIDON_DEVICE with_ends<N> with_neighbours(index channel, index channels, const Load& load) {
  with_ends<N> out{};
  if (channel != 0) {
    const floats<N> before = load(-static_cast<int>(N));
    for (index k = 0; k < reach; ++k) out.v[k] = before.v[N - reach + k];
  }
  const floats<N> own = load(0);
  for (index k = 0; k < N; ++k) out.v[reach + k] = own.v[k];
  if (channel + N != channels) {
    const floats<N> behind = load(static_cast<int>(N));
    for (index k = 0; k < reach; ++k) out.v[reach + N + k] = behind.v[k];
  }
  return out;
}
template <index N>
POSEIDON_DEVICE float sum_at(const with_ends<N>& all, index k) {
  float sum = 0;
  for (index j = 0; j < usual_size; ++j) sum += all.v[k + j];
  return sum;
}

template <index N, class T>
struct squares_from {
  const T* x;
  POSEIDON_DEVICE floats<N> operator()(int distance) const {
    auto v = load<N>(x + distance);
    for (index k = 0; k < N; ++k) v.v[k] *= v.v[k];
    return v;
  }
};
template <index N, class T>
struct shares_from {
  const T *dy, *y;
  const float* sums;
  POSEIDON_DEVICE floats<N> operator()(int distance) const {
    auto share = load<N>(dy + distance);
    const auto out = load<N>(y + distance), sum = load<N>(sums + distance);
    for (index k = 0; k < N; ++k) share.v[k] = share.v[k] * out.v[k] / sum.v[k];
    return share;
  }
};

template <class T>
void packed_forward(stream& s, const lrn_shape& l, const T* x, T* y, float* sums) {
  constexpr index N = pack<T>::width;
  const auto channels = static_cast<index>(l.over.channels);
  const divisor groups(channels / N);
  const float weight = weight_of(l), k = l.k;
  const falling_power power(l.beta);
  for_each(s, l.over.values() / N, [=] POSEIDON_DEVICE(index group) {
    const std::size_t first = std::size_t{group} * N;
    const auto squares =
        with_neighbours<N>(groups.remainder(group) * N, channels, squares_from<N, T>{x + first});
    auto out = load<N>(x + first);
    floats<N> sum;
    for (index c = 0; c < N; ++c) {
      sum.v[c] = k + weight * sum_at(squares, c);
      out.v[c] *= power(sum.v[c]);
    }
    store(sums + first, sum);
    store(y + first, out);
  });
}

template <class T>
void packed_backward(stream& s, const lrn_shape& l, const T* x, const T* y, const float* sums,
                     const T* dy, T* dx) {
  constexpr index N = pack<T>::width;
  const auto channels = static_cast<index>(l.over.channels);
  const divisor groups(channels / N);
  const float ratio = 2 * weight_of(l) * l.beta;
  const falling_power power(l.beta);
  for_each(s, l.over.values() / N, [=] POSEIDON_DEVICE(index group) {
    const std::size_t first = std::size_t{group} * N;
    const auto shares = with_neighbours<N>(groups.remainder(group) * N, channels,
                                           shares_from<N, T>{dy + first, y + first, sums + first});
    const auto in = load<N>(x + first), sum = load<N>(sums + first);
    auto out = load<N>(dy + first);
    for (index c = 0; c < N; ++c)
      out.v[c] = out.v[c] * power(sum.v[c]) - ratio * in.v[c] * sum_at(shares, c);
    store(dx + first, out);
  });
}

template <class T>
bool fits_packs(const lrn_shape& l, std::initializer_list<const void*> memory) {
  return !l.within_channel && l.size == usual_size && l.over.plane == 1 &&
         l.over.channels % pack<T>::width == 0 && are_aligned(memory);
}

}  // namespace

void lrn_forward(stream& s, const lrn_shape& l, const_values x, values y, float* sums) {
  with_type_of(x, [&](auto one) {
    using T = decltype(one);
    if (fits_packs<T>(l, {x.at(), y.at(), sums}))
      packed_forward<T>(s, l, x, y, sums);
    else
      forward<T>(s, l, x, y, sums);
  });
}

void lrn_backward(stream& s, const lrn_shape& l, const_values x, const_values y, const float* sums,
                  const_values dy, values dx) {
  with_type_of(x, [&](auto one) {
    using T = decltype(one);
    if (fits_packs<T>(l, {x.at(), y.at(), sums, dy.at(), dx.at()}))
      packed_backward<T>(s, l, x, y, sums, dy, dx);
    else
      backward<T>(s, l, x, y, sums, dy, dx);
  });
}

}  // namespace poseidon::gpu
