#include "data/exif.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace poseidon {
namespace {

using bytes = std::span<const std::uint8_t>;

/// A TIFF structure: numbers in the byte order that its first two bytes say.
class tiff {
 public:
  explicit tiff(bytes b) : bytes_(b), little_(b.size() > 1 && b[0] == 'I' && b[1] == 'I') {}

  [[nodiscard]] std::optional<std::uint32_t> number(std::size_t at, std::size_t length) const {
    if (at > bytes_.size() || length > bytes_.size() - at) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < length; ++i)
      value = value << 8 | bytes_[at + (little_ ? length - 1 - i : i)];
    return value;
  }

  /// IFD 0: a count, and entries of 12 bytes: tag, type, count, value.
  [[nodiscard]] int orientation() const {
    constexpr std::uint32_t orientation_tag = 0x0112;
    const auto start = number(4, 4);
    if (number(2, 2) != 42u || !start) return 1;
    const auto entries = number(*start, 2).value_or(0);
    for (std::uint32_t i = 0; i < entries; ++i) {
      const auto entry = std::size_t{*start} + 2 + std::size_t{12} * i;
      const auto tag = number(entry, 2);
      if (!tag) return 1;
      if (*tag != orientation_tag) continue;
      const auto value = number(entry + 8, 2).value_or(1);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
    return 1;
  }

 private:
  bytes bytes_;
  bool little_;
};

}  // namespace

int orientation_of(bytes exif) {
  return tiff(exif).orientation();
}

picture upright(picture p, int orientation) {
  if (orientation <= 1 || orientation > 8) return p;
  const bool turned = orientation >= 5;
  auto to = empty_picture(p.channels, turned ? p.width : p.height, turned ? p.height : p.width);
  auto* out = to.pixels.data();
  for (std::int64_t y = 0; y < to.height; ++y)
    for (std::int64_t x = 0; x < to.width; ++x, out += to.channels) {
      auto row = turned ? x : y, column = turned ? y : x;
      // From the far end: 2, 3, 7 and 8 count columns so, 3, 4, 6 and 7 rows.
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = p.width - 1 - column;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        row = p.height - 1 - row;
      std::copy_n(p.pixels.data() + (row * p.width + column) * p.channels, p.channels, out);
    }
  to.warning = std::move(p.warning);
  return to;
}

}  // namespace poseidon
