#include "cpu/convolution_shape.hpp"

#include "cpu/layer.hpp"
#include "models/net/convolution_windows.hpp"

#include <algorithm>
#include <utility>

namespace poseidon::cpu {
namespace {

std::size_t padded(std::size_t channels, std::size_t block) {
  return (channels + block - 1) / block * block;
}

}  // namespace

convolution_shape resolve_convolution(const net_layer& layer, const shape& input) {
  const auto& p = layer.spec.convolution_param();
  const auto channels =
      static_cast<std::size_t>(p.axis() < 0 ? p.axis() + static_cast<int>(input.size()) : p.axis());
  convolution_shape s;
  s.in = static_cast<std::size_t>(input[channels]);
  s.out = p.num_output();
  s.groups = p.group();
  s.bias = p.bias_term();
  convolution_windows w = resolve_windows(p, input.size() - channels - 1);
  s.kernel = std::move(w.kernel);
  s.stride = std::move(w.stride);
  s.pad = std::move(w.pad);
  s.dilation = std::move(w.dilation);
  return s;
}

convolution_layouts choose_layouts(const net& graph, const net_layer& layer, cpu_math math) {
  const shape& input = graph.blobs[layer.bottoms[0]].shape;
  if (input.size() != 4) return {};
  const convolution_shape s = resolve_convolution(layer, input);
  const bool dilated =
      std::any_of(s.dilation.begin(), s.dilation.end(), [](auto d) { return d > 1; });
  const bool first = s.in <= 3 && s.groups == 1;
  const bool wide = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
  convolution_layouts best;
  double best_cost = 0;
  for (const layout form : {layout::c16, layout::c8}) {
    if (form == layout::c16 && !wide) continue;
    if (math == cpu_math::bf16 && best_cost != 0) break;  // bfloat16 has blocks of 16 alone
    const std::size_t block = block_of(form);
    const bool depthwise = s.groups == s.in && s.groups == s.out;
    if (s.groups > 1 && !depthwise &&
        (s.in / s.groups % block != 0 || s.out / s.groups % block != 0)) {
      continue;  // a block may not straddle two groups
    }
    if (dilated && s.groups > 1) continue;
    // The work includes the padding; on a processor with AVX-512 the 8-wide kernels are a tenth
    // slower.
    const double cost = static_cast<double>(first ? 1 : padded(s.in, block)) *
                        static_cast<double>(padded(s.out, block)) *
                        (wide && form == layout::c8 ? 1.1 : 1.0);
    if (best_cost != 0 && cost >= best_cost) continue;
    best_cost = cost;
    best = {first ? layout::plain : form, form};
  }
  if (math == cpu_math::bf16 && multiplies_bf16_tiles() && !dilated)
    return {layout::pixels_bf16, layout::pixels_bf16};
  if (math == cpu_math::bf16 && best.out == layout::c16)
    return {first ? layout::plain_bf16 : layout::c16_bf16, layout::c16_bf16};
  return best;
}

}  // namespace poseidon::cpu
