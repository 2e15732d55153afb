#include "gpu/kernels/windows.hpp"
#include "gpu/runtime/launch.hpp"

#include <cmath>

namespace poseidon::gpu {
namespace {

/// The spatial extents of a convolution for kernels; axes that it has not are of one value.
struct windows {
  int image[3], result[3], kernel[3], stride[3], pad[3], dilation[3];
  index image_area, result_area, taps;
};

windows windows_of(const convolution_shape& c) {
  windows w{};
  for (std::size_t a = 0; a < 3; ++a) {
    const bool has = a < c.axes;
    const auto or_else = [&](std::int64_t v, int otherwise) {
      return has ? static_cast<int>(v) : otherwise;
    };
    w.image[a] = or_else(c.image[a], 1);
    w.result[a] = or_else(c.result[a], 1);
    w.kernel[a] = or_else(c.kernel[a], 1);
    w.stride[a] = or_else(c.stride[a], 1);
    w.pad[a] = or_else(c.pad[a], 0);
    w.dilation[a] = or_else(c.dilation[a], 1);
  }
  w.image_area = to_index(static_cast<std::size_t>(c.area(c.image)));
  w.result_area = to_index(static_cast<std::size_t>(c.area(c.result)));
  w.taps = to_index(static_cast<std::size_t>(c.area(c.kernel)));
  return w;
}

/// A number as places along three axes, the last the fastest.
POSEIDON_HOST_DEVICE inline void split(index number, const int* extents, int* places) {
  for (int a = 3; a-- > 0;) {
    places[a] = static_cast<int>(number % static_cast<index>(extents[a]));
    number /= static_cast<index>(extents[a]);
  }
}

POSEIDON_HOST_DEVICE inline float sigmoid_of(float x) {
  return 0.5f * std::tanh(0.5f * x) + 0.5f;
}

struct gates {
  float input, forget, output, candidate;
};
POSEIDON_HOST_DEVICE inline gates gates_of(const float* sums, index size, float continues) {
  return {sigmoid_of(sums[0]), continues == 0 ? 0.0f : continues * sigmoid_of(sums[size]),
          sigmoid_of(sums[2 * size]), std::tanh(sums[3 * size])};
}

}  // namespace

void spread_windows(stream& s, const convolution_shape& c, std::size_t planes, const float* images,
                    float* columns) {
  const windows w = windows_of(c);
  for_each(s, planes * w.taps * w.result_area, [=] POSEIDON_DEVICE(index i) {
    int result[3], tap[3];
    split(i % w.result_area, w.result, result);
    split(i / w.result_area % w.taps, w.kernel, tap);
    const index plane = i / w.result_area / w.taps;
    index from = 0;
    bool inside = true;
    for (int a = 0; a < 3; ++a) {
      const int at = result[a] * w.stride[a] - w.pad[a] + tap[a] * w.dilation[a];
      inside = inside && at >= 0 && at < w.image[a];
      from = from * static_cast<index>(w.image[a]) + static_cast<index>(at);
    }
    columns[i] = inside ? images[plane * w.image_area + from] : 0.0f;
  });
}

void gather_windows(stream& s, const convolution_shape& c, std::size_t planes, const float* columns,
                    float* images) {
  const windows w = windows_of(c);
  for_each(s, planes * w.image_area, [=] POSEIDON_DEVICE(index i) {
    int place[3], tap[3];
    split(i % w.image_area, w.image, place);
    const index plane = i / w.image_area;
    float sum = 0;
    for (index t = 0; t < w.taps; ++t) {
      split(t, w.kernel, tap);
      index result = 0;
      bool is_one = true;
      for (int a = 0; a < 3; ++a) {
        const int ahead = place[a] + w.pad[a] - tap[a] * w.dilation[a];
        const int at = ahead / w.stride[a];
        is_one = is_one && ahead >= 0 && ahead % w.stride[a] == 0 && at < w.result[a];
        result = result * static_cast<index>(w.result[a]) + static_cast<index>(at);
      }
      if (is_one) sum += columns[(plane * w.taps + t) * w.result_area + result];
    }
    images[i] = sum;
  });
}

void lstm_unit(stream& s, const lstm_shape& l, const float* before, const float* sums,
               const float* continues, float* c, float* h) {
  const index size = to_index(l.size);
  for_each(s, l.rows * l.size, [=] POSEIDON_DEVICE(index i) {
    const index row = i / size;
    const gates g = gates_of(sums + std::size_t{row} * 4 * size + i % size, size, continues[row]);
    c[i] = g.forget * before[i] + g.input * g.candidate;
    h[i] = g.output * std::tanh(c[i]);
  });
}

void lstm_unit_backward(stream& s, const lstm_shape& l, const float* before, const float* sums,
                        const float* continues, const float* c, const float* dc, const float* dh,
                        float* d_before, float* d_sums) {
  const index size = to_index(l.size);
  for_each(s, l.rows * l.size, [=] POSEIDON_DEVICE(index i) {
    const index row = i / size;
    const std::size_t first = std::size_t{row} * 4 * size + i % size;
    const gates g = gates_of(sums + first, size, continues[row]);
    const float t = std::tanh(c[i]), d = dc[i] + dh[i] * g.output * (1 - t * t);
    if (d_before != nullptr) d_before[i] = d * g.forget;
    if (d_sums == nullptr) return;
    d_sums[first] = d * g.candidate * g.input * (1 - g.input);
    d_sums[first + size] = d * before[i] * g.forget * (1 - g.forget);
    d_sums[first + 2 * size] = dh[i] * t * g.output * (1 - g.output);
    d_sums[first + 3 * size] = d * g.input * (1 - g.candidate * g.candidate);
  });
}

}  // namespace poseidon::gpu
