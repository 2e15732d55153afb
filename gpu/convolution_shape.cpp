#include "gpu/convolution_shape.hpp"

#include <stdexcept>

namespace poseidon::gpu {
namespace {

using extents = convolution_shape::extents;

/// Caffe: no value means the default, one value is for all axes, else one per axis.
template <class Repeated>
extents by_axis(const Repeated& values, std::size_t axes, std::int64_t otherwise) {
  extents e{};
  for (std::size_t a = 0; a < axes; ++a) {
    e[a] = values.empty() ? otherwise : values.Get(values.size() == 1 ? 0 : static_cast<int>(a));
  }
  return e;
}

}  // namespace

convolution_shape resolve_convolution(const net_layer& layer, const shape& image,
                                      const shape& result) {
  const auto& p = layer.spec.convolution_param();
  if (image.size() < 3 || image.size() > 2 + convolution_shape::most_axes) {
    throw std::invalid_argument("the GPU convolves 1 to 3 spatial axes, the bottom is " +
                                to_string(image) + ".");
  }
  if (p.axis() != 1 && p.axis() != 1 - static_cast<int>(image.size())) {
    throw std::invalid_argument("axis is " + std::to_string(p.axis()) +
                                "; the GPU convolves with the channels on axis 1.");
  }
  convolution_shape s;
  s.axes = image.size() - 2;
  s.batch = image[0];
  s.in = image[1];
  s.out = result[1];
  s.groups = p.group();
  for (std::size_t a = 0; a < s.axes; ++a) s.image[a] = image[2 + a], s.result[a] = result[2 + a];
  const auto pair = [](std::int64_t h, std::int64_t w) { return extents{h, w, 0}; };
  s.kernel =
      p.has_kernel_h() ? pair(p.kernel_h(), p.kernel_w()) : by_axis(p.kernel_size(), s.axes, 1);
  s.stride = p.has_stride_h() ? pair(p.stride_h(), p.stride_w()) : by_axis(p.stride(), s.axes, 1);
  s.pad = p.has_pad_h() ? pair(p.pad_h(), p.pad_w()) : by_axis(p.pad(), s.axes, 0);
  s.dilation = by_axis(p.dilation(), s.axes, 1);
  return s;
}

}  // namespace poseidon::gpu
