// data/datum.hpp - reads Caffe's Datum in place, without copying its bytes.
#pragma once
#include "data/picture.hpp"
#include "models/shape.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Values of one image as stored; exactly one of the two spans is not empty.
struct image {
  std::span<const std::uint8_t> bytes;
  std::span<const float> floats;
  std::int32_t label = 0;
  std::array<std::int64_t, 3> extents{};  ///< channels, height, width
  std::span<const std::uint8_t> file{};   ///< the picture file that it was decoded from, if any
  bool as_in_file = false;  ///< `file` decodes to exactly these values without options
  std::string warning{};    ///< as picture::warning
};

[[nodiscard]] shape shape_of(const image& i);

/// Memory for an image that cannot be used in place; reused from image to image.
struct image_scratch {
  std::vector<float> floats;
  std::vector<std::uint8_t> bytes, record;
};

/// Decodes an encoded Datum's picture to `colour`; other images keep their channels.
/// Overwrites   `scratch`; what it returns points into it, or into `record`.
/// Errors   std::runtime_error: not a Datum, a damaged picture, or a number of values that is not
///          its shape's.
[[nodiscard]] image parse_datum(std::span<const std::uint8_t> record, image_scratch& scratch,
                                picture_colour colour = picture_colour::as_stored);

/// A Datum of uint8 values, as the converters write it.
[[nodiscard]] std::string make_datum(const shape& s, std::span<const std::uint8_t> values,
                                     std::int32_t label);

}  // namespace poseidon
