// PPM, PGM and PBM (P1 to P6), which need no library. Values are what OpenCV makes of them, which is not the same for all
// where the largest value is not 255: numbers in text are stretched to 255, bytes are taken unchanged, and of 16 bits the
// upper 8 are taken.
//
// Source   Netpbm's ppm(5), pgm(5), pbm(5); for values OpenCV 4.6's cv::imread.
#include "data/picture.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <stdexcept>

namespace poseidon {
namespace {

constexpr const char* kind = "PPM, PGM or PBM";

/// What is left of a file to read.
class pnm_input {
 public:
  explicit pnm_input(std::span<const std::uint8_t> left) : left_(left) {}

  [[nodiscard]] std::span<const std::uint8_t> left() const { return left_; }
  void skip(std::size_t bytes) { left_ = left_.subspan(std::min(bytes, left_.size())); }

  /// Comments run from # to the end of the line.
  void skip_blanks() {
    bool in_comment = false;
    for (; !left_.empty(); skip(1)) {
      const auto c = left_[0];
      if (in_comment)
        in_comment = c != '\n' && c != '\r';
      else if (c == '#')
        in_comment = true;
      else if (std::isspace(c) == 0)
        return;
    }
  }
  /// The next number, or digit; no value: there is none. What is larger than is ever read stays so.
  std::optional<std::int64_t> number() { return digits(std::numeric_limits<std::size_t>::max()); }
  std::optional<std::int64_t> digit() { return digits(1); }

 private:
  std::optional<std::int64_t> digits(std::size_t most) {
    constexpr std::int64_t large = 1 << 30;
    skip_blanks();
    std::optional<std::int64_t> value;
    for (; most > 0 && !left_.empty() && std::isdigit(left_[0]) != 0; --most, skip(1))
      value = std::min(value.value_or(0) * 10 + (left_[0] - '0'), large);
    return value;
  }

  std::span<const std::uint8_t> left_;
};

struct pnm_header {
  bool is_text = false, is_bits = false;
  std::int64_t channels = 1, height = 0, width = 0, largest = 1;
  [[nodiscard]] std::int64_t value_bytes() const { return largest > 255 ? 2 : 1; }
};

pnm_header read_header(std::uint8_t magic, pnm_input& in) {
  const auto next = [&in] {
    const auto value = in.number();
    if (!value) throw std::runtime_error("is a " + std::string(kind) + " whose header is damaged");
    return *value;
  };
  pnm_header h;
  h.is_text = magic < '4';
  h.is_bits = magic == '1' || magic == '4';
  h.channels = magic == '3' || magic == '6' ? 3 : 1;
  h.width = next();
  h.height = next();
  if (!h.is_bits) h.largest = next();
  if (h.largest < 1 || h.largest > 65535)
    throw std::runtime_error("is a " + std::string(kind) + " of values up to " +
                             std::to_string(h.largest) + "; those up to 65535 are read");
  in.skip(1);  // one white space
  require_size(h.height, h.width);
  return h;
}

std::uint8_t stretched(std::int64_t value, const pnm_header& h) {
  value = std::min(value, h.largest);
  if (h.is_bits) return value == 0 ? 255 : 0;  // a 1 is ink
  return static_cast<std::uint8_t>(h.value_bytes() == 2 ? value >> 8 : value * 255 / h.largest);
}

void require_values(std::size_t has, std::int64_t needs, const char* what) {
  if (has < static_cast<std::size_t>(needs))
    throw std::runtime_error("is cut short: it has " + std::to_string(has) + " " + what +
                             " of pixels, its header says " + std::to_string(needs));
}

/// [height, width, channels] as they are stored, made bytes.
std::vector<std::uint8_t> read_text(pnm_input& in, const pnm_header& h) {
  const auto count = h.channels * h.height * h.width;
  // Each value has a digit at least: a short file is refused before memory is asked for.
  require_values(in.left().size(), count, "bytes");
  std::vector<std::uint8_t> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = h.is_bits ? in.digit() : in.number();
    if (!value && in.left().empty()) require_values(values.size(), count, "values");
    if (!value)
      throw std::runtime_error("is a damaged " + std::string(kind) + ": value " +
                               std::to_string(i + 1) + " of its pixels is no number");
    values.push_back(stretched(*value, h));
  }
  return values;
}

std::vector<std::uint8_t> read_bits(std::span<const std::uint8_t> from, const pnm_header& h) {
  const auto row_bytes = (h.width + 7) / 8;
  require_values(from.size(), row_bytes * h.height, "bytes");
  std::vector<std::uint8_t> values;
  values.reserve(static_cast<std::size_t>(h.height * h.width));
  for (std::int64_t y = 0; y < h.height; ++y)
    for (std::int64_t x = 0; x < h.width; ++x)
      values.push_back(
          stretched(from[static_cast<std::size_t>(y * row_bytes + x / 8)] >> (7 - x % 8) & 1, h));
  return values;
}

std::vector<std::uint8_t> read_bytes(std::span<const std::uint8_t> from, const pnm_header& h) {
  const auto count = static_cast<std::size_t>(h.channels * h.height * h.width);
  // Of two bytes the upper one is first.
  const auto step = static_cast<std::size_t>(h.value_bytes());
  require_values(from.size(), h.value_bytes() * h.channels * h.height * h.width, "bytes");
  if (step == 1) return {from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count)};
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from[i * step];
  return values;
}

}  // namespace

picture decode_pnm(std::span<const std::uint8_t> file, picture_colour colour) {
  pnm_input in(file.subspan(2));
  const auto h = read_header(file[1], in);
  const bool is_colour = h.channels == 3;
  if (colour == picture_colour::as_stored && h.value_bytes() == 2)
    throw std::runtime_error(
        "is a " + std::string(kind) +
        " of 16 bits per value; 8 are read, or give force_color or force_gray");
  const auto values = h.is_text   ? read_text(in, h)
                      : h.is_bits ? read_bits(in.left(), h)
                                  : read_bytes(in.left(), h);
  const bool want_colour =
      colour == picture_colour::colour || (colour == picture_colour::as_stored && is_colour);
  auto p = empty_picture(want_colour ? 3 : 1, h.height, h.width);
  const auto* from = values.data();
  for (auto *to = p.pixels.data(), *end = to + p.pixels.size(); to != end;
       from += h.channels, to += p.channels) {
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

}  // namespace poseidon
