// The options of a convolution as one value per spatial axis.
#include "models/net/convolution_windows.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using extents = std::vector<std::int64_t>;

TEST_CASE("convolution windows: an option holds for all axes, or for each its own") {
  caffe::ConvolutionParameter p;
  p.add_kernel_size(3);
  p.add_stride(1);
  p.add_stride(2);
  const auto w = resolve_windows(p, 2);
  CHECK(w.kernel == extents{3, 3});
  CHECK(w.stride == extents{1, 2});
  CHECK(w.pad == extents{0, 0});
  CHECK(w.dilation == extents{1, 1});
}

TEST_CASE(
    "convolution windows: one half of a pair is enough, the other is its default, as in Caffe") {
  caffe::ConvolutionParameter p;
  p.set_kernel_h(3);
  p.set_kernel_w(5);
  p.set_pad_w(2);
  const auto w = resolve_windows(p, 2);
  CHECK(w.kernel == extents{3, 5});
  CHECK(w.pad == extents{0, 2});
}
