#include "cpu/convolution_shape.hpp"

#include "cpu/layer.hpp"

#include <algorithm>

namespace poseidon::cpu {
namespace {

using dims = dnnl::memory::dims;

/// Caffe: no value means the default, one value is for all axes, else one per axis.
template <class Repeated>
dims by_axis(const Repeated& values, std::size_t axes, std::int64_t otherwise) {
  dims d(axes, otherwise);
  for (std::size_t i = 0; i < axes && values.size() > 0; ++i) {
    d[i] = values.Get(values.size() == 1 ? 0 : static_cast<int>(i));
  }
  return d;
}

std::size_t padded(std::size_t channels, std::size_t block) {
  return (channels + block - 1) / block * block;
}

}  // namespace

convolution_shape resolve_convolution(const net_layer& layer, const shape& input) {
  const auto& p = layer.spec.convolution_param();
  const auto channels =
      static_cast<std::size_t>(p.axis() < 0 ? p.axis() + static_cast<int>(input.size()) : p.axis());
  const std::size_t axes = input.size() - channels - 1;
  convolution_shape s;
  s.in = static_cast<std::size_t>(input[channels]);
  s.out = p.num_output();
  s.groups = p.group();
  s.bias = p.bias_term();
  s.kernel =
      p.has_kernel_h() ? dims{p.kernel_h(), p.kernel_w()} : by_axis(p.kernel_size(), axes, 1);
  s.stride = p.has_stride_h() ? dims{p.stride_h(), p.stride_w()} : by_axis(p.stride(), axes, 1);
  s.pad = p.has_pad_h() ? dims{p.pad_h(), p.pad_w()} : by_axis(p.pad(), axes, 0);
  s.dilation = by_axis(p.dilation(), axes, 1);
  return s;
}

std::vector<dnnl::algorithm> convolution_algorithms(const net_layer& layer,
                                                    const convolution_shape& s,
                                                    const shape& output) {
  const std::vector direct{dnnl::algorithm::convolution_direct};
  if (layer.spec.convolution_param().engine() == ::caffe::ConvolutionParameter::CAFFE)
    return direct;
  if (s.axes() != 2 || s.groups != 1 || s.in < 32 || s.out < 32) return direct;
  for (std::size_t a = 0; a < 2; ++a) {
    if (s.kernel[a] != 3 || s.stride[a] != 1 || s.dilation[a] != 1) return direct;
  }
  // Outputs are made in tiles of 4x4; where most of them would lie outside, nothing is won.
  const auto tiled = (output[2] + 3) / 4 * 4 * ((output[3] + 3) / 4 * 4);
  if (tiled > 2 * output[2] * output[3]) return direct;
  return {dnnl::algorithm::convolution_winograd, dnnl::algorithm::convolution_direct};
}

void require_convolvable(const layer_context& c) {
  const shape& bottom = c.bottom_shape(0);
  if (bottom.size() < 3 || bottom.size() > 5) {
    c.refuse("the CPU convolves 1 to 3 spatial axes, the bottom is " + to_string(bottom) + ".");
  }
  const int axis = c.layer.spec.convolution_param().axis();
  if (axis != 1 && axis != 1 - static_cast<int>(bottom.size())) {
    c.refuse("axis is " + std::to_string(axis) +
             "; the CPU convolves with the channels on axis 1.");
  }
}

convolution_layouts choose_layouts(const net& graph, const net_layer& layer) {
  const shape& input = graph.blobs[layer.bottoms[0]].shape;
  if (input.size() != 4) return {};
  const convolution_shape s = resolve_convolution(layer, input);
  const bool dilated =
      std::any_of(s.dilation.begin(), s.dilation.end(), [](auto d) { return d > 1; });
  const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  convolution_layouts best;
  double best_cost = 0;
  for (const layout form : {layout::c16, layout::c8}) {
    if (form == layout::c16 && !wide) continue;
    const std::size_t block = block_of(form);
    const bool depthwise = s.groups == s.in && s.groups == s.out;
    if (s.groups > 1 && !depthwise &&
        (s.in / s.groups % block != 0 || s.out / s.groups % block != 0)) {
      continue;  // a block may not straddle two groups
    }
    if (dilated && s.groups > 1) continue;
    // The work includes the padding; on a processor with AVX-512 the 8-wide kernels are a tenth
    // slower.
    const bool first = s.in <= 3 && s.groups == 1;
    const double cost = static_cast<double>(first ? 1 : padded(s.in, block)) *
                        static_cast<double>(padded(s.out, block)) *
                        (wide && form == layout::c8 ? 1.1 : 1.0);
    if (best_cost != 0 && cost >= best_cost) continue;
    best_cost = cost;
    best = {first ? layout::plain : form, form};
  }
  return best;
}

}  // namespace poseidon::cpu
