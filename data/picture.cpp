// Recognises the kind of a picture by its first bytes.
#include "data/picture.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace poseidon {
namespace {

bool begins(std::span<const std::uint8_t> file, std::initializer_list<int> with) {
  return file.size() >= with.size() && std::equal(with.begin(), with.end(), file.begin());
}

/// A BMP begins with two letters only, which many texts do too: the size of its second header belongs to it, 12 in OS/2 1,
/// up to 64 in OS/2 2, whose last fields may be left out, and up to 124 in Windows.
bool begins_bmp(std::span<const std::uint8_t> file) {
  return begins(file, {'B', 'M'}) && file.size() > 17 && file[15] == 0 && file[16] == 0 &&
         file[17] == 0 && (file[14] == 12 || (file[14] >= 36 && file[14] <= 124));
}

bool begins_pnm(std::span<const std::uint8_t> file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6' &&
         (std::isspace(file[2]) != 0 || file[2] == '#');
}

bool begins_tiff(std::span<const std::uint8_t> file) {  // 43: for files beyond 4 GiB
  return begins(file, {'I', 'I', 42, 0}) || begins(file, {'M', 'M', 0, 42}) ||
         begins(file, {'I', 'I', 43, 0}) || begins(file, {'M', 'M', 0, 43});
}

bool begins_webp(std::span<const std::uint8_t> file) {
  return begins(file, {'R', 'I', 'F', 'F'}) && file.size() >= 12 &&
         begins(file.subspan(8), {'W', 'E', 'B', 'P'});
}

}  // namespace

void require_size(std::int64_t height, std::int64_t width) {
  constexpr std::int64_t most = 1 << 27;
  if (height < 1 || width < 1 || height > most / width)
    throw std::runtime_error("says it is " + std::to_string(height) + " rows of " +
                             std::to_string(width) + " pixels; from 1 to 2^27 pixels are read");
}

picture empty_picture(std::int64_t channels, std::int64_t height, std::int64_t width) {
  require_size(height, width);
  picture p{channels, height, width, {}};
  p.pixels.resize(static_cast<std::size_t>(channels * height * width));
  return p;
}

std::optional<picture_kind> kind_of_picture(std::span<const std::uint8_t> file) {
  if (begins(file, {0xff, 0xd8, 0xff})) return picture_kind::jpeg;
  if (begins(file, {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a})) return picture_kind::png;
  if (begins_webp(file)) return picture_kind::webp;
  if (begins_tiff(file)) return picture_kind::tiff;
  if (begins_bmp(file)) return picture_kind::bmp;
  if (begins_pnm(file)) return picture_kind::pnm;
  return std::nullopt;
}

const char* name_of(picture_kind kind) {
  switch (kind) {
    case picture_kind::jpeg:
      return "JPEG";
    case picture_kind::png:
      return "PNG";
    case picture_kind::pnm:
      return "PPM, PGM or PBM";
    case picture_kind::bmp:
      return "BMP";
    case picture_kind::webp:
      return "WebP";
    case picture_kind::tiff:
      return "TIFF";
  }
  return "unknown";
}

bool is_picture_ending(std::string ending) {
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string all = std::string(picture_endings) + ",";
  return ending.size() > 1 && all.find(ending + ",") != std::string::npos;
}

picture decode_picture(std::span<const std::uint8_t> file, picture_colour colour) {
  if (const auto kind = kind_of_picture(file)) switch (*kind) {
      case picture_kind::jpeg:
        return decode_jpeg(file, colour);
      case picture_kind::png:
        return decode_png(file, colour);
      case picture_kind::pnm:
        return decode_pnm(file, colour);
      case picture_kind::bmp:
        return decode_bmp(file, colour);
      case picture_kind::webp:
        return decode_webp(file, colour);
      case picture_kind::tiff:
        return decode_tiff(file, colour);
    }
  if (file.empty()) throw std::runtime_error("is empty");
  throw std::runtime_error(
      "is none of JPEG, PNG, WebP, TIFF, BMP, PPM, PGM, PBM by its first bytes");
}

void to_planes(const picture& from, std::vector<std::uint8_t>& to) {
  to.resize(from.pixels.size());
  const auto pixels = static_cast<std::size_t>(from.height * from.width);
  const auto channels = static_cast<std::size_t>(from.channels);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) to[c * pixels + i] = from.pixels[i * channels + c];
}

}  // namespace poseidon
