// gpu/layout.hpp
//
// In which order the values of images lie in device memory. Tensor cores multiply along the channels, and cuDNN turns
// images and results around for every product where those do not lie side by side; so nets have NHWC inside where their
// products round to what tensor cores take (docs/decisions/027-nhwc-inside.md). Outside, on the host, in files and on
// the wire, everything is Caffe's NCHW, parameters and gradients as well.
//
// A blob has one layout for good, and so has a layer: that of the images its kernels take. Where the two differ the
// layer gets copies (gpu/converted_blobs.hpp).
#pragma once
#include "models/net.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace poseidon::gpu {

/// nchw is Caffe's, [images, channels, height, width] with the width's values side by side, and that of every blob
/// that is no image; nhwc has the channels' side by side.
enum class layout { nchw, nhwc };

/// What a layer's kernels take: only NCHW, what its first image bottom has, or NHWC rather than NCHW.
enum class layout_wish { nchw, as_bottom, nhwc };

/// Do the two layouts differ for this shape? Not without four axes, nor with a single channel or place.
[[nodiscard]] bool has_layouts(const shape& s);

struct layouts {
  std::vector<layout> blobs;   ///< by net blob; nchw where both are the same
  std::vector<layout> layers;  ///< by net layer
};

/// `images`: nchw, and everything is; nhwc, and layers that wish for it have it, as have those behind them that take
/// what comes. Blobs of data layers, and those that change their size (models/net.hpp, resized_blobs), are NCHW.
[[nodiscard]] layouts choose_layouts(const net& n, layout images);

/// On the host: `values` of shape `s`, of which both have as many, from NHWC to NCHW and back.
/// Errors   std::invalid_argument if one has another number of values.
void to_nchw(const shape& s, std::span<const float> nhwc, std::span<float> nchw);
void to_nhwc(const shape& s, std::span<const float> nchw, std::span<float> nhwc);

}  // namespace poseidon::gpu
