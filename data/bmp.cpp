// BMP by a reader of our own: no library of Debian 12 reads BMP alone, and those that read it besides other formats (GDK-Pixbuf,
// ImageMagick, SDL) bring dozens of libraries and give other pixels than OpenCV where 16 bits hold a colour. The format
// is a header, a palette, and rows that are not compressed or in runs.
//
// Source   Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER, BITMAPV4HEADER).
#include "data/picture.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {

using bmp_bytes = std::span<const std::uint8_t>;
using bmp_colour = std::array<std::uint8_t, 3>;  ///< blue, green, red

enum bmp_compression : std::uint32_t { rgb = 0, runs_of_8 = 1, runs_of_4 = 2, bit_fields = 3 };

[[noreturn]] void damaged_bmp(const std::string& why) {
  throw std::runtime_error("is a damaged BMP: " + why);
}

std::uint32_t number(bmp_bytes file, std::size_t at, std::size_t length) {
  if (at > file.size() || length > file.size() - at) damaged_bmp("it is cut short in its header");
  std::uint32_t value = 0;
  for (std::size_t i = length; i > 0; --i) value = value << 8 | file[at + i - 1];
  return value;
}

struct bmp_header {
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  std::uint32_t bits = 0, compression = rgb;
  std::size_t pixels_at = 0;
  std::array<bmp_colour, 256> palette{};  ///< colours that the file lacks are black
  std::array<std::uint32_t, 4> masks{};   ///< of blue, green, red, alpha
  [[nodiscard]] bool has_palette() const { return bits <= 8; }
};

void read_palette(bmp_bytes file, std::size_t at, std::uint32_t used, std::size_t entry_bytes,
                  bmp_header& h) {
  const std::uint32_t most = 1u << h.bits;
  if (used > 256) damaged_bmp("its palette has " + std::to_string(used) + " colours");
  const auto colours = used == 0 ? most : used;
  for (std::uint32_t i = 0; i < colours; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      h.palette[i][c] = static_cast<std::uint8_t>(number(file, at + i * entry_bytes + c, 1));
}

/// Where each colour lies in a pixel of 16 or 32 bits.
void read_masks(bmp_bytes file, std::size_t header_bytes, bmp_header& h) {
  constexpr std::size_t masks_at = 54;  // inside newer headers, behind the one of 40 bytes
  h.masks = h.bits == 16 ? std::array<std::uint32_t, 4>{0x1f, 0x3e0, 0x7c00, 0}
                         : std::array<std::uint32_t, 4>{0xff, 0xff00, 0xff0000, 0};
  if (h.compression != bit_fields) return;
  for (std::size_t c = 0; c < 3; ++c) h.masks[c] = number(file, masks_at + 4 * (2 - c), 4);
  if (header_bytes >= 56) h.masks[3] = number(file, masks_at + 12, 4);
  const auto is_one_of = [&h](std::uint32_t blue, std::uint32_t green, std::uint32_t red) {
    return h.masks[0] == blue && h.masks[1] == green && h.masks[2] == red;
  };
  const bool known = h.bits == 16
                         ? is_one_of(0x1f, 0x3e0, 0x7c00) || is_one_of(0x1f, 0x7e0, 0xf800)
                         : std::all_of(h.masks.begin(), h.masks.begin() + 3, [](std::uint32_t m) {
                             return m == 0xff || m == 0xff00 || m == 0xff0000 || m == 0xff000000;
                           });
  if (!known)
    throw std::runtime_error(
        "is a BMP whose pixels have other bits than 5-5-5, 5-6-5 or 8-8-8 for blue, green and red");
}

bmp_header read_bmp_header(bmp_bytes file) {
  bmp_header h;
  h.pixels_at = number(file, 10, 4);
  const std::size_t header_bytes = number(file, 14, 4);
  std::uint32_t colours = 0;
  if (header_bytes == 12) {  // OS/2's
    h.width = number(file, 18, 2);
    h.height = static_cast<std::int16_t>(number(file, 20, 2));
    h.bits = number(file, 24, 2);
  } else {
    h.width = static_cast<std::int32_t>(number(file, 18, 4));
    h.height = static_cast<std::int32_t>(number(file, 22, 4));
    h.bits = number(file, 28, 2);
    h.compression = number(file, 30, 4);
    colours = number(file, 46, 4);
  }
  h.top_down = h.height < 0;
  h.height = h.top_down ? -h.height : h.height;
  const bool deep = h.bits == 16 || h.bits == 24 || h.bits == 32;
  if (!deep && h.bits != 1 && h.bits != 4 && h.bits != 8)
    throw std::runtime_error("is a BMP of " + std::to_string(h.bits) +
                             " bits per pixel; 1, 4, 8, 16, 24 and 32 are read");
  const bool fits = h.compression == rgb || (h.compression == runs_of_8 && h.bits == 8) ||
                    (h.compression == runs_of_4 && h.bits == 4) ||
                    (h.compression == bit_fields && (h.bits == 16 || h.bits == 32));
  if (!fits)
    throw std::runtime_error("is a BMP of " + std::to_string(h.bits) +
                             " bits per pixel and compression " + std::to_string(h.compression) +
                             "; run-length encoding of 4 and 8 bits is read, and bit fields of 16 "
                             "and 32 bits");
  if (h.has_palette())
    read_palette(file, 14 + header_bytes, colours, header_bytes == 12 ? 3 : 4, h);
  else if (h.bits != 24)
    read_masks(file, header_bytes, h);
  return h;
}

/// Each pixel's place in the palette, in runs. Pixels that no run reaches have the first colour.
class run_reader {
 public:
  run_reader(bmp_bytes runs, const bmp_header& h)
      : runs_(runs), header_(h), places_(static_cast<std::size_t>(h.width * h.height)) {}

  std::vector<std::uint8_t> read() {
    bool row_ended = false;  // by a run of 8 bits, which OpenCV lets go on in the next row
    while (true) {
      lacks_end_ = is_full() && !ends_next();
      if (lacks_end_) break;
      const auto count = next(), code = next();
      const bool was_ended = std::exchange(row_ended, false);
      if (count > 0) {
        put(count, [code](std::size_t) { return code; });
        row_ended = header_.bits == 8 && x_ == header_.width;
        if (row_ended) next_row();
      } else if (code > 2) {
        put_literally(code);
      } else if (code == 1) {
        break;
      } else if (code == 0) {
        if (!was_ended) next_row();
      } else {
        x_ += next();
        y_ += next();
      }
    }
    return std::move(places_);
  }
  /// Whether read() came to the end of the last row, and no code for the end of the picture followed.
  [[nodiscard]] bool lacks_end() const { return lacks_end_; }

 private:
  [[nodiscard]] bool is_full() const {
    return y_ >= header_.height || (y_ == header_.height - 1 && x_ == header_.width);
  }
  /// Whether the end of a row or of the picture follows.
  [[nodiscard]] bool ends_next() const {
    return at_ + 1 < runs_.size() && runs_[at_] == 0 && runs_[at_ + 1] <= 1;
  }
  void next_row() {
    x_ = 0;
    ++y_;
  }
  std::uint8_t next() {
    if (at_ >= runs_.size()) damaged_bmp("its runs are cut short");
    return runs_[at_++];
  }
  template <class Code>
  void put(std::size_t count, Code code) {
    if (y_ >= header_.height || x_ + static_cast<std::int64_t>(count) > header_.width)
      damaged_bmp("a run leaves the picture");
    auto* to = places_.data() + y_ * header_.width + x_;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t both = code(i);
      to[i] =
          header_.bits == 8 ? both : static_cast<std::uint8_t>(i % 2 == 0 ? both >> 4 : both & 0xf);
    }
    x_ += static_cast<std::int64_t>(count);
  }
  /// Pixels one by one, filled up to 16 bits.
  void put_literally(std::size_t count) {
    const std::size_t bytes = header_.bits == 8 ? count : (count + 1) / 2;
    if (bytes > runs_.size() - at_) damaged_bmp("its runs are cut short");
    const auto pixels = runs_.subspan(at_, bytes);
    put(count, [&](std::size_t i) { return pixels[header_.bits == 8 ? i : i / 2]; });
    at_ = std::min(at_ + bytes + bytes % 2, runs_.size());
  }

  bmp_bytes runs_;
  const bmp_header& header_;
  std::vector<std::uint8_t> places_;
  std::size_t at_ = 0;
  std::int64_t x_ = 0, y_ = 0;
  bool lacks_end_ = false;
};

/// 8 bits of a colour. Fewer bits are moved up and zeros follow, as OpenCV does it.
std::uint8_t masked(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  pixel &= mask;
  while ((mask & 0x80000000) == 0) {
    mask <<= 1;
    pixel <<= 1;
  }
  return static_cast<std::uint8_t>(pixel >> 24);
}

void put_pixel(const bmp_colour& colour, std::uint8_t alpha, const picture& p, std::uint8_t* to) {
  if (p.channels == 1) {
    *to = luma(colour[0], colour[1], colour[2]);
    return;
  }
  std::copy(colour.begin(), colour.end(), to);
  if (p.channels == 4) to[3] = alpha;
}

void put_row(const bmp_header& h, const std::uint8_t* row, const picture& p, std::uint8_t* to) {
  for (std::int64_t x = 0; x < h.width; ++x, to += p.channels) {
    if (h.has_palette()) {
      const auto bit = static_cast<std::size_t>(x) * h.bits;
      const auto place = row[bit / 8] >> (8 - h.bits - bit % 8) & ((1u << h.bits) - 1);
      put_pixel(h.palette[place], 255, p, to);
    } else if (h.bits == 24) {
      put_pixel({row[3 * x], row[3 * x + 1], row[3 * x + 2]}, 255, p, to);
    } else {
      const auto bytes = h.bits / 8;
      const auto pixel = number({row + static_cast<std::size_t>(x) * bytes, bytes}, 0, bytes);
      put_pixel({masked(pixel, h.masks[0]), masked(pixel, h.masks[1]), masked(pixel, h.masks[2])},
                masked(pixel, h.masks[3]), p, to);
    }
  }
}

std::int64_t channels_of(const bmp_header& h, picture_colour colour) {
  if (colour != picture_colour::as_stored) return colour == picture_colour::colour ? 3 : 1;
  if (!h.has_palette()) return h.masks[3] != 0 ? 4 : 3;
  const auto is_gray = [](const bmp_colour& c) { return c[0] == c[1] && c[1] == c[2]; };
  return std::all_of(h.palette.begin(), h.palette.end(), is_gray) ? 1 : 3;
}

}  // namespace

picture decode_bmp(std::span<const std::uint8_t> file, picture_colour colour) {
  auto h = read_bmp_header(file);
  require_size(h.height, h.width);
  auto rows = file.subspan(std::min(h.pixels_at, file.size()));
  std::vector<std::uint8_t> places;  // outlives `rows`, which then shows it
  std::size_t row_bytes = (static_cast<std::size_t>(h.width) * h.bits + 31) / 32 * 4;
  bool lacks_end = false;
  if (h.compression == runs_of_8 || h.compression == runs_of_4) {
    run_reader reader(rows, h);
    places = reader.read();
    lacks_end = reader.lacks_end();
    rows = places;
    h.bits = 8;
    row_bytes = static_cast<std::size_t>(h.width);
  }
  const auto needs = row_bytes * static_cast<std::size_t>(h.height);
  if (rows.size() < needs)
    throw std::runtime_error("is cut short: it has " + std::to_string(rows.size()) +
                             " bytes of pixels, its header says " + std::to_string(needs));
  auto p = empty_picture(channels_of(h, colour), h.height, h.width);
  for (std::int64_t y = 0; y < h.height; ++y) {
    const auto from = static_cast<std::size_t>(h.top_down ? y : h.height - 1 - y) * row_bytes;
    put_row(h, rows.data() + from, p, p.pixels.data() + y * h.width * p.channels);
  }
  if (lacks_end)
    p.warning =
        "is a BMP whose runs lack the code for their end, which may have been cut short; none of "
        "its rows is missing, so it is read";
  return p;
}

}  // namespace poseidon
