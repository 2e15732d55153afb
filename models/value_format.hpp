// models/value_format.hpp - the formats in which values travel between nodes. models/device/wire_format.hpp converts to them and back.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace poseidon {

/// float32 sends values unchanged; the others round. float16 and bfloat16 have half the bytes; int8 and int4 have integers of 8 and 4 bits
/// in blocks of values, each block with the step between two integers. The numbers are those of wire.capnp.
enum class wire_format : std::uint8_t {
  float32 = 0,
  float16 = 1,
  bfloat16 = 2,
  int8 = 3,
  int4 = 4
};
inline constexpr std::size_t wire_formats = 5;
inline constexpr std::array<std::string_view, wire_formats> wire_format_names{
    "float32", "float16", "bfloat16", "int8", "int4"};

[[nodiscard]] inline std::string_view to_string(wire_format f) {
  return wire_format_names.at(static_cast<std::size_t>(f));
}
[[nodiscard]] inline std::optional<wire_format> wire_format_of(std::string_view name) {
  for (std::size_t i = 0; i < wire_formats; ++i)
    if (wire_format_names[i] == name) return static_cast<wire_format>(i);
  return std::nullopt;
}
/// For messages: "float32, float16, bfloat16, int8 LAST int4".
[[nodiscard]] inline std::string wire_format_list(std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < wire_formats; ++i) {
    if (i > 0) out += i + 1 < wire_formats ? ", " : " " + std::string(last) + " ";
    out += wire_format_names[i];
  }
  return out;
}

/// Values that have one step, where a format has steps. What is cut off an array of such a format begins at a multiple of them.
inline constexpr std::size_t block_values = 256;
[[nodiscard]] constexpr bool has_blocks(wire_format f) {
  return f == wire_format::int8 || f == wire_format::int4;
}

/// Bytes of n values. In int8 and int4: of each block its step, a bfloat16, and its integers; the last block may be shorter, and in int4 the
/// last byte of it half full.
[[nodiscard]] constexpr std::size_t wire_bytes(wire_format f, std::size_t n) {
  const auto steps = 2 * ((n + block_values - 1) / block_values);
  switch (f) {
    case wire_format::float32:
      return 4 * n;
    case wire_format::int8:
      return steps + n;
    case wire_format::int4:
      return steps + (n + 1) / 2;
    default:
      return 2 * n;
  }
}

/// A parameter with fewer values stays float32 where a run has int8 or int4: biases and BatchNorm's scales are many layers' most sensitive
/// values and a few thousandths of their bytes.
inline constexpr std::size_t fewest_in_blocks = 4096;
[[nodiscard]] constexpr wire_format format_for(wire_format f, std::size_t values) {
  return has_blocks(f) && values < fewest_in_blocks ? wire_format::float32 : f;
}

}  // namespace poseidon
