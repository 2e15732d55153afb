// tests/reference/image_layers.hpp - naive twins of the image kernels: plain loops, double
// precision, Caffe's layout. They say what is right and never how to be fast.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace poseidon::reference {

using values = std::vector<double>;

inline values widen(const std::vector<float>& v) {
  return {v.begin(), v.end()};
}

struct conv {
  int n, ic, h, w, oc, kh, kw, stride = 1, pad = 0, dilation = 1, groups = 1;
  [[nodiscard]] int oh() const { return (h + 2 * pad - (dilation * (kh - 1) + 1)) / stride + 1; }
  [[nodiscard]] int ow() const { return (w + 2 * pad - (dilation * (kw - 1) + 1)) / stride + 1; }
};

/// Calls f(output index, input index, weight index) for every product of the convolution, those of one weight along a row one after the other.
template <class F>
void each_product(const conv& c, F f) {
  const int icg = c.ic / c.groups, ocg = c.oc / c.groups;
  for (int n = 0; n < c.n; ++n)
    for (int o = 0; o < c.oc; ++o)
      for (int i = 0; i < icg; ++i)
        for (int a = 0; a < c.kh; ++a)
          for (int b = 0; b < c.kw; ++b) {
            const int channel = o / ocg * icg + i, weight = ((o * icg + i) * c.kh + a) * c.kw + b;
            const int shift = b * c.dilation - c.pad;
            const int first = shift < 0 ? (-shift + c.stride - 1) / c.stride : 0;
            const int end = std::min(c.ow(), (c.w - 1 - shift + c.stride) / c.stride);
            for (int y = 0; y < c.oh(); ++y) {
              const int row = y * c.stride - c.pad + a * c.dilation;
              if (row < 0 || row >= c.h) continue;
              const int to = ((n * c.oc + o) * c.oh() + y) * c.ow();
              const int from = ((n * c.ic + channel) * c.h + row) * c.w + shift;
              for (int x = first; x < end; ++x) f(to + x, from + x * c.stride, weight);
            }
          }
}

inline values convolve(const conv& c, const values& x, const values& w, const values& b) {
  const std::size_t plane = static_cast<std::size_t>(c.oh()) * c.ow();
  values y(static_cast<std::size_t>(c.n) * c.oc * plane);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = b[i / plane % static_cast<std::size_t>(c.oc)];
  each_product(c, [&](int o, int i, int k) { y[o] += x[i] * w[k]; });
  return y;
}

struct conv_gradients {
  values dx, dw, db;
};

inline conv_gradients convolve_backward(const conv& c, const values& x, const values& w,
                                        const values& dy) {
  conv_gradients g{values(x.size()), values(w.size()), values(static_cast<std::size_t>(c.oc))};
  const std::size_t plane = static_cast<std::size_t>(c.oh()) * c.ow();
  for (std::size_t i = 0; i < dy.size(); ++i) g.db[i / plane % g.db.size()] += dy[i];
  each_product(c, [&](int o, int i, int k) {
    g.dx[i] += dy[o] * w[k];
    g.dw[k] += dy[o] * x[i];
  });
  return g;
}

struct pool {
  int planes, h, w, kernel, stride, pad;
  [[nodiscard]] int out(int extent) const {
    int o =
        static_cast<int>(std::ceil(static_cast<double>(extent + 2 * pad - kernel) / stride)) + 1;
    if (pad > 0 && (o - 1) * stride >= extent + pad) --o;
    return o;
  }
};

/// Calls f(output index, plane, list of input indices in window order, divisor of AVE).
template <class F>
void each_window(const pool& p, F f) {
  int out = 0;
  for (int c = 0; c < p.planes; ++c)
    for (int y = 0; y < p.out(p.h); ++y)
      for (int x = 0; x < p.out(p.w); ++x, ++out) {
        const int top = y * p.stride - p.pad, left = x * p.stride - p.pad;
        const int bottom = std::min(top + p.kernel, p.h + p.pad),
                  right = std::min(left + p.kernel, p.w + p.pad);
        std::vector<std::size_t> inside;
        for (int row = top; row < bottom; ++row)
          for (int column = left; column < right; ++column)
            if (row >= 0 && row < p.h && column >= 0 && column < p.w)
              inside.push_back(static_cast<std::size_t>((c * p.h + row) * p.w + column));
        f(static_cast<std::size_t>(out), inside,
          static_cast<double>((bottom - top) * (right - left)));
      }
}

inline std::size_t outputs(const pool& p) {
  return static_cast<std::size_t>(p.planes) * p.out(p.h) * p.out(p.w);
}

inline values max_pool(const pool& p, const values& x, const values* dy = nullptr) {
  values y(outputs(p)), dx(x.size());
  each_window(p, [&](std::size_t o, const std::vector<std::size_t>& in, double) {
    std::size_t best = in[0];
    for (const std::size_t i : in)
      if (x[i] > x[best]) best = i;
    y[o] = x[best];
    if (dy != nullptr) dx[best] += (*dy)[o];
  });
  return dy != nullptr ? dx : y;
}

inline values ave_pool(const pool& p, const values& x, const values* dy = nullptr) {
  values y(outputs(p)), dx(x.size());
  each_window(p, [&](std::size_t o, const std::vector<std::size_t>& in, double area) {
    for (const std::size_t i : in) {
      y[o] += x[i] / area;
      if (dy != nullptr) dx[i] += (*dy)[o] / area;
    }
  });
  return dy != nullptr ? dx : y;
}

inline values relu(values v, double slope = 0) {
  for (double& x : v) x = x > 0 ? x : slope * x;
  return v;
}
/// dy where y > 0, slope * dy elsewhere.
inline values relu_backward(const values& y, values dy, double slope = 0) {
  for (std::size_t i = 0; i < y.size(); ++i) dy[i] *= y[i] > 0 ? 1 : slope;
  return dy;
}

/// x * (k + alpha / size * sum of squares of the neighbouring channels)^-beta
inline values lrn_across(int n, int channels, int plane, int size, double alpha, double beta,
                         double k, const values& x) {
  values y(x.size());
  for (int s = 0; s < n; ++s)
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < plane; ++i) {
        double sum = 0;
        for (int o = std::max(0, c - size / 2); o <= std::min(channels - 1, c + size / 2); ++o) {
          const double v = x[(s * channels + o) * plane + i];
          sum += v * v;
        }
        const std::size_t at = (s * channels + c) * plane + i;
        y[at] = x[at] * std::pow(k + alpha / size * sum, -beta);
      }
  return y;
}

}  // namespace poseidon::reference
