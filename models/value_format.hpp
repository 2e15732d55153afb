// models/value_format.hpp - the formats in which values travel between nodes. models/device/wire_format.hpp converts to them and back.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace poseidon {

/// float32 sends values unchanged; the other two formats have half the bytes and round. The numbers are those of wire.capnp.
enum class wire_format : std::uint8_t { float32 = 0, float16 = 1, bfloat16 = 2 };
inline constexpr std::size_t wire_formats = 3;
inline constexpr std::array<std::string_view, wire_formats> wire_format_names{"float32", "float16",
                                                                              "bfloat16"};

[[nodiscard]] inline std::string_view to_string(wire_format f) {
  return wire_format_names.at(static_cast<std::size_t>(f));
}
[[nodiscard]] inline std::optional<wire_format> wire_format_of(std::string_view name) {
  for (std::size_t i = 0; i < wire_formats; ++i)
    if (wire_format_names[i] == name) return static_cast<wire_format>(i);
  return std::nullopt;
}

/// Bytes of one value.
[[nodiscard]] constexpr std::size_t width(wire_format f) {
  return f == wire_format::float32 ? 4 : 2;
}

}  // namespace poseidon
