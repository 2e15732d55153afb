// data/datum.hpp - Caffe's Datum, read in place: bytes stay where they are.
#pragma once
#include "models/shape.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poseidon {

/// Values of one image [channels, height, width] as stored; exactly one of the two spans is not
/// empty.
struct image {
  std::span<const std::uint8_t> bytes;
  std::span<const float> floats;
  std::int32_t label = 0;
};

struct datum {
  poseidon::shape shape;  ///< {channels, height, width}
  image values;
};

/// `floats` is overwritten and, if the record has float_data, holds what values.floats points at.
/// Errors   std::runtime_error: not a Datum, encoded, or a number of values that is not its
/// shape's.
[[nodiscard]] datum parse_datum(std::span<const std::uint8_t> record, std::vector<float>& floats);

/// Like parse_datum, for a record whose shape is known: no allocation. The shape must be
/// `expected`.
[[nodiscard]] image parse_datum(std::span<const std::uint8_t> record, std::vector<float>& floats,
                                const shape& expected);

/// A Datum of uint8 values, as the converters write it.
[[nodiscard]] std::string make_datum(const shape& s, std::span<const std::uint8_t> values,
                                     std::int32_t label);

}  // namespace poseidon
