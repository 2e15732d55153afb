#include "models/net/convolution_windows.hpp"

#include "models/net/refusal.hpp"

namespace poseidon {
namespace {

using extents = std::vector<std::int64_t>;

/// In Caffe no value means the default, one value is for all axes, several are one per axis.
template <class Repeated>
extents by_axis(const Repeated& values, std::size_t axes, std::int64_t default_value) {
  extents e(axes, default_value);
  for (std::size_t a = 0; a < axes && !values.empty(); ++a)
    e[a] = values.Get(values.size() == 1 ? 0 : static_cast<int>(a));
  return e;
}

}  // namespace

convolution_windows resolve_windows(const ::caffe::ConvolutionParameter& p, std::size_t axes) {
  convolution_windows w;
  w.kernel = p.has_kernel_h() || p.has_kernel_w() ? extents{p.kernel_h(), p.kernel_w()}
                                                  : by_axis(p.kernel_size(), axes, 1);
  w.stride = p.has_stride_h() || p.has_stride_w() ? extents{p.stride_h(), p.stride_w()}
                                                  : by_axis(p.stride(), axes, 1);
  w.pad =
      p.has_pad_h() || p.has_pad_w() ? extents{p.pad_h(), p.pad_w()} : by_axis(p.pad(), axes, 0);
  w.dilation = by_axis(p.dilation(), axes, 1);
  return w;
}

void require_convolvable(const net_layer& layer, const shape& bottom, const std::string& device) {
  if (bottom.size() < 3 || bottom.size() > 5)
    refuse_layer(layer, "the " + device + " convolves 1 to 3 spatial axes, the bottom is " +
                            to_string(bottom) + ".");
  const int axis = layer.spec.convolution_param().axis();
  if (axis != 1 && axis != 1 - static_cast<int>(bottom.size()))
    refuse_layer(layer, "axis is " + std::to_string(axis) + "; the " + device +
                            " convolves with the channels on axis 1.");
}

}  // namespace poseidon
