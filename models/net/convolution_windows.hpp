// models/net/convolution_windows.hpp - the windows that a convolution's specification describes.
#pragma once
#include "models/net/net.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace poseidon {

/// One value per spatial axis.
struct convolution_windows {
  std::vector<std::int64_t> kernel, stride, pad, dilation;
};

/// Reads the options of a Convolution, Deconvolution or Im2col layer. The layer's rule (rules_windows.cpp) has checked
/// how many values each option has.
[[nodiscard]] convolution_windows resolve_windows(const ::caffe::ConvolutionParameter& options,
                                                  std::size_t axes);

/// `device` is a word for the message: "CPU".
/// Errors   spec_error for numbers of axes and places of the channels that the devices have no kernel for.
void require_convolvable(const net_layer& layer, const shape& bottom, const std::string& device);

}  // namespace poseidon
