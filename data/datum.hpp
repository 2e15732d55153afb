// data/datum.hpp - Caffe's Datum, read in place: bytes stay where they are.
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
  bool as_in_file = false;  ///< `file` decodes to just these values when nothing else is asked for
};

[[nodiscard]] shape shape_of(const image& i);

/// Where an image that is not in its file as it is needed is put; reused from image to image.
struct image_scratch {
  std::vector<float> floats;
  std::vector<std::uint8_t> bytes, record;
};

/// An encoded Datum's picture is decoded, to `colour`; others have the channels that they have.
/// Overwrites   `scratch`; what it returns points into it, or into `record`.
/// Errors   std::runtime_error: not a Datum, a damaged picture, or a number of values that is not
///          its shape's.
[[nodiscard]] image parse_datum(std::span<const std::uint8_t> record, image_scratch& scratch,
                                picture_colour colour = picture_colour::as_stored);

/// A Datum of uint8 values, as the converters write it.
[[nodiscard]] std::string make_datum(const shape& s, std::span<const std::uint8_t> values,
                                     std::int32_t label);

}  // namespace poseidon
