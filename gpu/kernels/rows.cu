#include "gpu/kernels/rows.hpp"
#include "gpu/runtime/launch.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

struct sum_and_other {
  double sum, other;
};
struct add_both {
  POSEIDON_HOST_DEVICE sum_and_other operator()(sum_and_other a, sum_and_other b) const {
    return {a.sum + b.sum, a.other + b.other};
  }
};

}  // namespace

void sum_rows(stream& s, row_sum of, std::size_t rows, std::size_t size, float factor,
              const float* x, float* sums) {
  const index length = to_index(size);
  reduce_rows<double>(
      s, rows, size, 0.0,
      [=] POSEIDON_DEVICE(index row, index i) {
        const double v = x[row * std::size_t{length} + i];
        return of == row_sum::squares ? v * v : of == row_sum::absolute && v < 0 ? -v : v;
      },
      [] POSEIDON_DEVICE(double a, double b) { return a + b; },
      [=] POSEIDON_DEVICE(index row, double sum) {
        sums[row] = static_cast<float>(sum * static_cast<double>(factor));
      });
}

void sum_rows_backward(stream& s, row_sum of, std::size_t rows, std::size_t size, float factor,
                       const float* x, const float* dsums, float* dx) {
  const index length = to_index(size);
  for_each(s, rows * size, [=] POSEIDON_DEVICE(index i) {
    const float slope = of == row_sum::values    ? 1.0f
                        : of == row_sum::squares ? 2 * x[i]
                        : x[i] > 0               ? 1.0f
                        : x[i] < 0               ? -1.0f
                                                 : 0.0f;
    dx[i] = factor * dsums[i / length] * slope;
  });
}

void standardize_rows(stream& s, std::size_t rows, std::size_t size, bool divides, float eps,
                      const float* x, float* means, float* divisor, float* y) {
  const index length = to_index(size);
  const auto count = static_cast<double>(size);
  reduce_rows<sum_and_other>(
      s, rows, size, sum_and_other{0, 0},
      [=] POSEIDON_DEVICE(index row, index i) {
        const double v = x[row * std::size_t{length} + i];
        return sum_and_other{v, v * v};
      },
      add_both{},
      [=] POSEIDON_DEVICE(index row, sum_and_other all) {
        const double mean = all.sum / count, variance = all.other / count - mean * mean;
        means[row] = static_cast<float>(mean);
        // Caffe adds eps to the deviation, not to the variance.
        divisor[row] =
            divides ? static_cast<float>(std::sqrt(variance > 0 ? variance : 0.0)) + eps : 1.0f;
      });
  for_each(s, rows * size, [=] POSEIDON_DEVICE(index i) {
    y[i] = (x[i] - means[i / length]) / divisor[i / length];
  });
}

void standardize_rows_backward(stream& s, std::size_t rows, std::size_t size, bool divides,
                               const float* y, const float* divisor, const float* dy, float* means,
                               float* dx) {
  const index length = to_index(size);
  const std::size_t second = rows;
  const auto count = static_cast<double>(size);
  reduce_rows<sum_and_other>(
      s, rows, size, sum_and_other{0, 0},
      [=] POSEIDON_DEVICE(index row, index i) {
        const std::size_t at = row * std::size_t{length} + i;
        return sum_and_other{dy[at], static_cast<double>(dy[at]) * static_cast<double>(y[at])};
      },
      add_both{},
      [=] POSEIDON_DEVICE(index row, sum_and_other all) {
        means[row] = static_cast<float>(all.sum / count);
        means[second + row] = divides ? static_cast<float>(all.other / count) : 0.0f;
      });
  for_each(s, rows * size, [=] POSEIDON_DEVICE(index i) {
    const index row = i / length;
    dx[i] = (dy[i] - means[row] - y[i] * means[second + row]) / divisor[row];
  });
}

void find_largest(stream& s, const largest_places& p, const float* x, float* places,
                  float* values) {
  const index size = to_index(p.size), inner = to_index(p.inner), top = to_index(p.top);
  const std::size_t row = p.step * p.top * p.inner;
  for_each(s, p.outer * p.inner, [=] POSEIDON_DEVICE(index i) {
    const index o = i / inner, k = i % inner;
    const float* from = x + std::size_t{o} * size * inner + k;
    index last = size;  // the one found before
    for (index t = 0; t < top; ++t) {
      index best = size;
      for (index c = 0; c < size; ++c) {
        const float v = from[std::size_t{c} * inner];
        const float before = last == size ? 0 : from[std::size_t{last} * inner];
        if (last != size && !(v < before || (v == before && c < last))) continue;
        if (best == size || v >= from[std::size_t{best} * inner]) best = c;
      }
      if (best == size) best = last == size ? 0 : last;  // nothing compares: NaN
      const std::size_t at = o * row + std::size_t{t} * inner + k;
      if (places != nullptr) places[at] = static_cast<float>(best);
      if (values != nullptr) values[at] = from[std::size_t{best} * inner];
      last = best;
    }
  });
}

}  // namespace poseidon::gpu
