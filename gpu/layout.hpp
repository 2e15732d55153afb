// gpu/layout.hpp
//
// In which order, and as what, the values of images lie in device memory. Tensor cores multiply along the channels, and cuDNN turns
// images and results around for every product where those do not lie side by side; so nets have NHWC inside where their
// products round to what tensor cores take (docs/decisions/027-nhwc-inside.md), and with products of bfloat16 what lies
// between them is bfloat16 too (030-bfloat16-inside.md). Outside, on the host, in files and on the wire, everything is
// Caffe's NCHW of float32, parameters and gradients as well.
//
// A blob has one layout for good, and so has a layer: that of the images its kernels take. Where the two differ the
// layer gets copies (gpu/converted_blobs.hpp).
#pragma once
#include "gpu/runtime/layout.hpp"
#include "models/net/net.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace poseidon::gpu {

/// What a layer's kernels take: only NCHW, what its first image bottom has, or what images have inside.
enum class layout_option { nchw, as_bottom, inside };

/// Do the two layouts differ for this shape? Never without four axes; in the order not with a single channel or place.
[[nodiscard]] bool differ(layout a, layout b, const shape& s);

struct layouts {
  std::vector<layout> blobs;   ///< by net blob; nchw where both are the same
  std::vector<layout> layers;  ///< by net layer
};

/// `images`: what layers that wish for it have, as have those behind them that take what comes. Blobs of data layers, and those that change their size (models/net/net.hpp, resized_blobs), are NCHW.
[[nodiscard]] layouts choose_layouts(const net& n, layout images);

/// On the host: values of shape `s` from `of` to NCHW and back. `nchw` has as many, `there` as many bytes as they take.
/// Errors   std::invalid_argument if one has another size.
void to_nchw(const shape& s, layout of, std::span<const std::byte> there, std::span<float> nchw);
void from_nchw(const shape& s, std::span<const float> nchw, layout to, std::span<std::byte> there);

}  // namespace poseidon::gpu
