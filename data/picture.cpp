// Recognises the kind of a picture by its first bytes; reads PPM and PGM, which need no library.
#include "data/picture.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace poseidon {
namespace {

bool begins(std::span<const std::uint8_t> file, std::initializer_list<int> with) {
  return file.size() >= with.size() && std::equal(with.begin(), with.end(), file.begin());
}

/// The next number of a PNM header; comments run from # to the end of the line.
std::int64_t header_number(std::span<const std::uint8_t> file, std::size_t& at) {
  while (at < file.size() && (std::isspace(file[at]) != 0 || file[at] == '#'))
    if (file[at] == '#')
      while (at < file.size() && file[at] != '\n') ++at;
    else
      ++at;
  std::int64_t number = 0;
  const auto begin = at;
  for (; at < file.size() && std::isdigit(file[at]) != 0 && at - begin < 9; ++at)
    number = number * 10 + (file[at] - '0');
  if (at == begin) throw std::runtime_error("is a PPM or PGM whose header is damaged");
  return number;
}

/// A BMP begins with two letters only, which many texts do too: the size of its second header belongs to it.
bool begins_bmp(std::span<const std::uint8_t> file) {
  static constexpr std::array<std::uint8_t, 7> header_sizes{12, 40, 52, 56, 64, 108, 124};
  return begins(file, {'B', 'M'}) && file.size() > 17 && file[15] == 0 && file[16] == 0 &&
         file[17] == 0 &&
         std::find(header_sizes.begin(), header_sizes.end(), file[14]) != header_sizes.end();
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

picture decode_pnm(std::span<const std::uint8_t> file, picture_colour colour) {
  const bool is_colour = file[1] == '6';
  std::size_t at = 2;
  const auto width = header_number(file, at), height = header_number(file, at),
             largest = header_number(file, at);
  if (largest != 255)
    throw std::runtime_error("is a PPM or PGM of values up to " + std::to_string(largest) +
                             "; those up to 255 are read");
  ++at;  // one white space
  const std::int64_t stored = is_colour ? 3 : 1;
  const bool want_colour =
      colour == picture_colour::colour || (colour == picture_colour::as_stored && is_colour);
  require_size(height, width);
  const auto needs = static_cast<std::size_t>(stored * height * width);
  const auto has = at < file.size() ? file.size() - at : 0;
  if (has < needs)
    throw std::runtime_error("is cut short: it has " + std::to_string(has) +
                             " bytes of pixels, its header says " + std::to_string(needs));
  auto p = empty_picture(want_colour ? 3 : 1, height, width);
  const auto* from = file.data() + at;
  auto* to = p.pixels.data();
  for (std::int64_t i = 0; i < height * width; ++i, from += stored, to += p.channels) {
    const int red = from[0], green = from[is_colour ? 1 : 0], blue = from[is_colour ? 2 : 0];
    if (!want_colour) {
      *to = is_colour ? luma(blue, green, red) : from[0];
      continue;
    }
    to[0] = static_cast<std::uint8_t>(blue);
    to[1] = static_cast<std::uint8_t>(green);
    to[2] = static_cast<std::uint8_t>(red);
  }
  return p;
}

std::optional<picture_kind> kind_of_picture(std::span<const std::uint8_t> file) {
  if (begins(file, {0xff, 0xd8, 0xff})) return picture_kind::jpeg;
  if (begins(file, {0x89, 'P', 'N', 'G', 0x0d, 0x0a, 0x1a, 0x0a})) return picture_kind::png;
  if (begins_webp(file)) return picture_kind::webp;
  if (begins_tiff(file)) return picture_kind::tiff;
  if (begins_bmp(file)) return picture_kind::bmp;
  if (begins(file, {'P', '5'}) || begins(file, {'P', '6'})) return picture_kind::pnm;
  return std::nullopt;
}

const char* name_of(picture_kind kind) {
  switch (kind) {
    case picture_kind::jpeg:
      return "JPEG";
    case picture_kind::png:
      return "PNG";
    case picture_kind::pnm:
      return "PPM or PGM";
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
  throw std::runtime_error("is none of JPEG, PNG, WebP, TIFF, BMP, PPM, PGM by its first bytes");
}

void to_planes(const picture& from, std::vector<std::uint8_t>& to) {
  to.resize(from.pixels.size());
  const auto pixels = static_cast<std::size_t>(from.height * from.width);
  const auto channels = static_cast<std::size_t>(from.channels);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) to[c * pixels + i] = from.pixels[i * channels + c];
}

}  // namespace poseidon
