// models/device/wire_format.hpp
//
// The format of values between nodes. float32 sends them unchanged; the other formats have fewer bytes and round: float16 and bfloat16 each
// value by itself, int8 and int4 in blocks (block_format.hpp).
// The sender keeps the rounding error of a value and adds it to the next value (error feedback), so it is delayed and not
// lost. models/plan/wire_choice.hpp chooses the format of each parameter.
//
// Source   Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019; both directions: Tang et al., ICML 2019.
#pragma once
#include "models/indexed.hpp"
#include "models/value_format.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace poseidon {

/// By parameter of the train net; empty: float32 throughout.
using parameter_formats = by_id<parameter_id, wire_format>;
[[nodiscard]] inline wire_format format_of(const parameter_formats& formats,
                                           parameter_id parameter) {
  return formats.contains(parameter) ? formats[parameter] : wire_format::float32;
}

// In all functions below spans have one length, `bytes` wire_bytes(f, that), little-endian. They round to the nearest,
// ties to even; finite values stay finite, at most the largest value of the format; infinities and NaN stay unchanged, and
// in int8 and int4 make all of their block NaN. The bits are the same on every processor. What is cut off an array of int8 or int4
// begins at a multiple of block_values.
// Errors   std::invalid_argument for spans that do not fit each other; nothing is written.

void encode(wire_format f, std::span<const float> values, std::span<std::byte> bytes);

void decode(wire_format f, std::span<const std::byte> bytes, std::span<float> values);

/// As encode(), but finite values beyond the format's largest become infinite, as a conversion in a program makes them; in int8 and int4,
/// which no program converts to, it is encode().
void encode_cast(wire_format f, std::span<const float> values, std::span<std::byte> bytes);

/// bytes = values + residual, rounded; residual = the rounding error. A value that is not finite leaves no residual.
void encode_with_feedback(wire_format f, std::span<const float> values, std::span<float> residual,
                          std::span<std::byte> bytes);

/// bytes = now - before, rounded.
void encode_change(wire_format f, std::span<const float> now, std::span<const float> before,
                   std::span<std::byte> bytes);

/// into = before + bytes; the two may be the same memory.
void add_decoded(wire_format f, std::span<const std::byte> bytes, std::span<const float> before,
                 std::span<float> into);

/// The same for processors without F16C and AVX2, here for the test that compares them.
namespace portable {
void encode(wire_format f, std::span<const float> values, std::span<std::byte> bytes);
void encode_cast(wire_format f, std::span<const float> values, std::span<std::byte> bytes);
void decode(wire_format f, std::span<const std::byte> bytes, std::span<float> values);
}  // namespace portable

}  // namespace poseidon
