// gpu/layout.hpp
//
// The order and the type of the values of images in device memory. Tensor cores multiply along the channels; where the
// values of these do not lie side by side, cuDNN transposes images and results for every product. So nets have NHWC
// inside where their products round to the precision of tensor cores (docs/decisions/027-nhwc-inside.md), and with
// products of bfloat16 the values between them are bfloat16, too (030-bfloat16-inside.md). Outside, on the host, in
// files and on the wire, all values are Caffe's NCHW of float32, parameters and gradients as well.
//
// A blob has one layout, which does not change, and so has a layer: that of the images its kernels take. Where the two
// differ the layer gets copies (gpu/converted_blobs.hpp).
#pragma once
#include "gpu/runtime/layout.hpp"
#include "models/net/net.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace poseidon::gpu {

/// The layout that a layer's kernels take: only NCHW, that of its first image bottom, or that of images inside the net.
enum class layout_option { nchw, as_bottom, inside };

/// Do the two layouts differ for this shape? Never without four axes; orders do not differ with a single channel or place.
[[nodiscard]] bool differ(layout a, layout b, const shape& s);

struct layouts {
  std::vector<layout> blobs;   ///< by net blob; nchw where the orders do not differ
  std::vector<layout> layers;  ///< by net layer
};

/// `images`: the layout of layers with layout_option::inside, and of layers behind them that take the layout of their
/// bottom. Blobs of data layers, and blobs that change their size (models/net/net.hpp, resized_blobs), are NCHW.
[[nodiscard]] layouts choose_layouts(const net& n, layout images);

/// Turn values of shape `s` on the host from layout `of` to NCHW and back. `there` holds the values in the other layout.
/// Errors   std::invalid_argument if the size of a span is not that of the values.
void to_nchw(const shape& s, layout of, std::span<const std::byte> there, std::span<float> nchw);
void from_nchw(const shape& s, std::span<const float> nchw, layout to, std::span<std::byte> there);

}  // namespace poseidon::gpu
