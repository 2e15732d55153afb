#include "gpu/kernels/lrn.hpp"
#include "gpu/map.hpp"

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

/// What a neighbour's result says about one of its inputs, but for the input itself.
template <class T>
struct share_of {
  const T *dy, *y;
  const float* sums;
  POSEIDON_HOST_DEVICE float operator()(index i) const {
    return to_float(dy[i]) * to_float(y[i]) / sums[i];
  }
};

/// alpha / n
float weight_of(const lrn_shape& l) {
  return l.alpha / static_cast<float>(l.within_channel ? l.size * l.size : l.size);
}

template <class T>
void forward(stream& s, const lrn_shape& l, const T* x, T* y, float* sums) {
  const neighbours n = neighbours_of(l);
  const float weight = weight_of(l), k = l.k, beta = l.beta;
  for_each(s, l.over.values(), [=] POSEIDON_DEVICE(index i) {
    const float sum = k + weight * sum_around(n, i, square_of<T>{x});
    sums[i] = sum;
    y[i] = round_to<T>(to_float(x[i]) * std::pow(sum, -beta));
  });
}

template <class T>
void backward(stream& s, const lrn_shape& l, const T* x, const T* y, const float* sums, const T* dy,
              T* dx) {
  const neighbours n = neighbours_of(l);
  const float beta = l.beta, ratio = 2 * weight_of(l) * l.beta;
  for_each(s, l.over.values(), [=] POSEIDON_DEVICE(index i) {
    const float own = to_float(dy[i]) * std::pow(sums[i], -beta);
    dx[i] = round_to<T>(own - ratio * to_float(x[i]) * sum_around(n, i, share_of<T>{dy, y, sums}));
  });
}

}  // namespace

void lrn_forward(stream& s, const lrn_shape& l, const_values x, values y, float* sums) {
  with_type_of(x, [&](auto one) { forward<decltype(one)>(s, l, x, y, sums); });
}

void lrn_backward(stream& s, const lrn_shape& l, const_values x, const_values y, const float* sums,
                  const_values dy, values dx) {
  with_type_of(x, [&](auto one) { backward<decltype(one)>(s, l, x, y, sums, dy, dx); });
}

}  // namespace poseidon::gpu
