#include "gpu/layers/convolution_shape.hpp"

#include "models/net/convolution_windows.hpp"

#include <algorithm>

namespace poseidon::gpu {

convolution_shape resolve_convolution(const net_layer& layer, const shape& image,
                                      const shape& result) {
  const auto& p = layer.spec.convolution_param();
  convolution_shape s;
  s.axes = image.size() - 2;
  s.batch = image[0];
  s.in = image[1];
  s.out = result[1];
  s.groups = p.group();
  for (std::size_t a = 0; a < s.axes; ++a) s.image[a] = image[2 + a], s.result[a] = result[2 + a];
  const convolution_windows w = resolve_windows(p, s.axes);
  const auto take = [](const auto& values, convolution_shape::extents& to) {
    std::copy(values.begin(), values.end(), to.begin());
  };
  take(w.kernel, s.kernel);
  take(w.stride, s.stride);
  take(w.pad, s.pad);
  take(w.dilation, s.dilation);
  return s;
}

}  // namespace poseidon::gpu
