#include "gpu/kernels/lrn.hpp"
#include "gpu/launch.hpp"

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

struct square_of {
  const float* x;
  POSEIDON_HOST_DEVICE float operator()(index i) const { return x[i] * x[i]; }
};

/// What a neighbour's result says about one of its inputs, but for the input itself.
struct share_of {
  const float *dy, *y, *sums;
  POSEIDON_HOST_DEVICE float operator()(index i) const { return dy[i] * y[i] / sums[i]; }
};

/// alpha / n
float weight_of(const lrn_shape& l) {
  return l.alpha / static_cast<float>(l.within_channel ? l.size * l.size : l.size);
}

}  // namespace

void lrn_forward(stream& s, const lrn_shape& l, const float* x, float* y, float* sums) {
  const neighbours n = neighbours_of(l);
  const float weight = weight_of(l), k = l.k, beta = l.beta;
  for_each(s, l.over.values(), [=] POSEIDON_DEVICE(index i) {
    const float sum = k + weight * sum_around(n, i, square_of{x});
    sums[i] = sum;
    y[i] = x[i] * std::pow(sum, -beta);
  });
}

void lrn_backward(stream& s, const lrn_shape& l, const float* x, const float* y, const float* sums,
                  const float* dy, float* dx) {
  const neighbours n = neighbours_of(l);
  const float beta = l.beta, ratio = 2 * weight_of(l) * l.beta;
  for_each(s, l.over.values(), [=] POSEIDON_DEVICE(index i) {
    dx[i] =
        dy[i] * std::pow(sums[i], -beta) - ratio * x[i] * sum_around(n, i, share_of{dy, y, sums});
  });
}

}  // namespace poseidon::gpu
