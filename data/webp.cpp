// WebP through libwebp, whose functions return a status.
#include "data/picture.hpp"

#include <stdexcept>
#include <webp/decode.h>

namespace poseidon {
namespace {

void require_decoded(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK:
      return;
    case VP8_STATUS_OUT_OF_MEMORY:
      throw std::runtime_error("is a WebP for which memory is lacking");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      throw std::runtime_error("is a damaged WebP: it is cut short");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      throw std::runtime_error("is a WebP of a kind that libwebp does not read");
    default:
      throw std::runtime_error("is a damaged WebP: its data cannot be decoded");
  }
}

/// The luma of cv::cvtColor, which OpenCV calls for WebP alone: in 15 bits, where luma() has 14.
picture gray_of(const picture& colour) {
  auto p = empty_picture(1, colour.height, colour.width);
  const auto* from = colour.pixels.data();
  for (auto& to : p.pixels) {
    to = static_cast<std::uint8_t>(
        (from[0] * 3735 + from[1] * 19235 + from[2] * 9798 + (1 << 14)) >> 15);
    from += 3;
  }
  return p;
}

}  // namespace

picture decode_webp(std::span<const std::uint8_t> file, picture_colour colour) {
  WebPDecoderConfig decoder;
  if (WebPInitDecoderConfig(&decoder) == 0) throw std::runtime_error("cannot start libwebp");
  require_decoded(WebPGetFeatures(file.data(), file.size(), &decoder.input));
  if (decoder.input.has_animation != 0)
    throw std::runtime_error("is an animated WebP; those of one picture are read");
  const bool keeps_alpha = colour == picture_colour::as_stored && decoder.input.has_alpha != 0;
  auto p = empty_picture(keeps_alpha ? 4 : 3, decoder.input.height, decoder.input.width);
  decoder.output.colorspace = keeps_alpha ? MODE_BGRA : MODE_BGR;
  decoder.output.is_external_memory = 1;
  auto& to = decoder.output.u.RGBA;
  to.rgba = p.pixels.data();
  to.stride = static_cast<int>(p.width * p.channels);
  to.size = p.pixels.size();
  require_decoded(WebPDecode(file.data(), file.size(), &decoder));
  return colour == picture_colour::gray ? gray_of(p) : p;
}

}  // namespace poseidon
