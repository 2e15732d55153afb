// Recognises the kind of a picture by its first bytes; reads PPM and PGM, which need no library.
#include "data/picture.hpp"

#include <algorithm>
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

/// OpenCV's BT.601 luma in 14 bits, rounded.
std::uint8_t luma(int blue, int green, int red) {
  return static_cast<std::uint8_t>((blue * 1868 + green * 9617 + red * 4899 + (1 << 13)) >> 14);
}

}  // namespace

picture empty_picture(std::int64_t channels, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t most = 1 << 27;
  if (height < 1 || width < 1 || height > most / width)
    throw std::runtime_error("says it is " + std::to_string(height) + " rows of " +
                             std::to_string(width) + " pixels; from 1 to 2^27 pixels are read");
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
  auto p = empty_picture(want_colour ? 3 : 1, height, width);
  const auto needs = static_cast<std::size_t>(stored * height * width);
  const auto has = at < file.size() ? file.size() - at : 0;
  if (has < needs)
    throw std::runtime_error("is cut short: it has " + std::to_string(has) +
                             " bytes of pixels, its header says " + std::to_string(needs));
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
  if (begins(file, {'P', '5'}) || begins(file, {'P', '6'})) return picture_kind::pnm;
  return std::nullopt;
}

picture decode_picture(std::span<const std::uint8_t> file, picture_colour colour) {
  if (const auto kind = kind_of_picture(file)) {
    if (*kind == picture_kind::jpeg) return decode_jpeg(file, colour);
    return *kind == picture_kind::png ? decode_png(file, colour) : decode_pnm(file, colour);
  }
  if (file.empty()) throw std::runtime_error("is empty");
  throw std::runtime_error("is none of JPEG, PNG, PPM, PGM by its first bytes");
}

void to_planes(const picture& from, std::vector<std::uint8_t>& to) {
  to.resize(from.pixels.size());
  const auto pixels = static_cast<std::size_t>(from.height * from.width);
  const auto channels = static_cast<std::size_t>(from.channels);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) to[c * pixels + i] = from.pixels[i * channels + c];
}

}  // namespace poseidon
