// cpu/convolution_shape.hpp - what a convolution's specification says, resolved for its blobs.
#pragma once
#include "models/net/net.hpp"

#include <dnnl.hpp>

#include <cstddef>
#include <vector>

namespace poseidon::cpu {

/// Channels and spatial extents of one convolution; vectors hold one value per spatial axis.
struct convolution_shape {
  std::size_t in = 0, out = 0, groups = 1;
  dnnl::memory::dims kernel, stride, pad, dilation;
  bool bias = true;

  [[nodiscard]] std::size_t axes() const { return kernel.size(); }
  /// Extents of the weights as oneDNN wants them: a leading axis for groups if there are several.
  [[nodiscard]] dnnl::memory::dims weights() const {
    dnnl::memory::dims d;
    const auto g = static_cast<dnnl::memory::dim>(groups);
    if (groups > 1) d.push_back(g);
    d.push_back(static_cast<dnnl::memory::dim>(out) / g);
    d.push_back(static_cast<dnnl::memory::dim>(in) / g);
    d.insert(d.end(), kernel.begin(), kernel.end());
    return d;
  }
  /// oneDNN counts the zeros between taps, Caffe the distance of taps.
  [[nodiscard]] dnnl::memory::dims zeros_between() const {
    dnnl::memory::dims d = dilation;
    for (auto& v : d) --v;
    return d;
  }
};

/// Reads convolution_param, of Im2col too; `input` is the bottom's shape.
[[nodiscard]] convolution_shape resolve_convolution(const net_layer& layer, const shape& input);

}  // namespace poseidon::cpu
