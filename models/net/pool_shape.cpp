#include "models/net/pool_shape.hpp"

#include "models/net/net.hpp"

namespace poseidon {

pool_shape resolve_pooling(const net_layer& layer, const shape& input, const shape& output) {
  const auto& p = layer.spec.pooling_param();
  pool_shape s;
  s.height = static_cast<int>(input[2]);
  s.width = static_cast<int>(input[3]);
  s.out_height = static_cast<int>(output[2]);
  s.out_width = static_cast<int>(output[3]);
  s.kernel_h = static_cast<int>(p.has_kernel_h() ? p.kernel_h() : p.kernel_size());
  s.kernel_w = static_cast<int>(p.has_kernel_w() ? p.kernel_w() : p.kernel_size());
  if (p.global_pooling()) s.kernel_h = s.height, s.kernel_w = s.width;
  s.stride_h = static_cast<int>(p.has_stride_h() ? p.stride_h() : p.stride());
  s.stride_w = static_cast<int>(p.has_stride_w() ? p.stride_w() : p.stride());
  s.pad_h = static_cast<int>(p.has_pad_h() ? p.pad_h() : p.pad());
  s.pad_w = static_cast<int>(p.has_pad_w() ? p.pad_w() : p.pad());
  return s;
}

}  // namespace poseidon
