// TIFF through libtiff's conversion to RGBA, which OpenCV uses too for 8 bits per value: it knows palettes, CMYK, YCbCr,
// tiles and 16 bits. Colours are multiplied with alpha on the way, as there.
#include "data/exif.hpp"
#include "data/picture.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <tiffio.h>
#include <utility>

namespace poseidon {
namespace {

/// A file in memory, and what libtiff said first about its damage.
struct tiff_input {
  std::span<const std::uint8_t> bytes;
  std::size_t at = 0;
  std::string error;
};

tiff_input& input_of(thandle_t handle) {
  return *static_cast<tiff_input*>(handle);
}

tmsize_t read_some(thandle_t handle, void* to, tmsize_t bytes) {
  auto& in = input_of(handle);
  const auto left = in.bytes.size() - std::min(in.at, in.bytes.size());
  const auto n = std::min(left, static_cast<std::size_t>(std::max<tmsize_t>(bytes, 0)));
  if (n > 0) std::memcpy(to, in.bytes.data() + in.at, n);
  in.at += n;
  return static_cast<tmsize_t>(n);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) {
  return 0;
}

toff_t seek(thandle_t handle, toff_t to, int from) {
  auto& in = input_of(handle);
  in.at = to + (from == SEEK_CUR ? in.at : from == SEEK_END ? in.bytes.size() : 0);
  return in.at;
}

int close_nothing(thandle_t) {
  return 0;
}

toff_t size_of_input(thandle_t handle) {
  return input_of(handle).bytes.size();
}

/// libtiff reads through this "map". Without it, it refuses uncompressed tiles of another size than multiples of 1024 bytes.
/// It writes nothing there.
int map_input(thandle_t handle, void** begin, toff_t* size) {
  *begin = const_cast<std::uint8_t*>(input_of(handle).bytes.data());
  *size = input_of(handle).bytes.size();
  return 1;
}

void unmap_nothing(thandle_t, void*, toff_t) {}

/// 1: libtiff does not print it.
int keep_first(TIFF*, void* handle, const char*, const char* format, va_list values) {
  auto& in = input_of(handle);
  char text[256] = "";
  std::vsnprintf(text, sizeof text, format, values);
  if (in.error.empty()) in.error = text;
  return 1;
}

int ignore_warning(TIFF*, void*, const char*, const char*, va_list) {
  return 1;
}

[[noreturn]] void damaged_tiff(const tiff_input& in) {
  throw std::runtime_error("is a damaged TIFF: " +
                           (in.error.empty() ? "libtiff cannot read it" : in.error));
}

using tiff_handle = std::unique_ptr<TIFF, decltype(&TIFFClose)>;

tiff_handle open_tiff(tiff_input& in) {
  constexpr tmsize_t most_at_once = tmsize_t{1} << 29;  // 2^27 pixels of 4 bytes
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  if (!options) throw std::runtime_error("cannot start libtiff");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most_at_once);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_first, &in);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore_warning, &in);
  tiff_handle opened(
      TIFFClientOpenExt("picture", "r", &in, read_some, write_nothing, seek, close_nothing,
                        size_of_input, map_input, unmap_nothing, options.get()),
      TIFFClose);
  if (!opened) damaged_tiff(in);
  return opened;
}

class rgba_image {
 public:
  explicit rgba_image(TIFF* file) {
    char reason[1024] = "";
    if (TIFFRGBAImageOK(file, reason) == 0 || TIFFRGBAImageBegin(&image_, file, 1, reason) == 0)
      throw std::runtime_error(std::string("is a TIFF of a kind that is not read: ") + reason);
    image_.req_orientation = image_.orientation;  // as it is stored
  }
  rgba_image(const rgba_image&) = delete;
  rgba_image& operator=(const rgba_image&) = delete;
  ~rgba_image() { TIFFRGBAImageEnd(&image_); }

  [[nodiscard]] const TIFFRGBAImage& get() const { return image_; }
  /// Rows from `first` on, of `columns` pixels each.
  [[nodiscard]] bool read(std::int64_t first, std::int64_t rows, std::int64_t columns,
                          std::uint32_t* to) {
    image_.row_offset = static_cast<int>(first);
    image_.width = static_cast<std::uint32_t>(columns);
    return TIFFRGBAImageGet(&image_, to, image_.width, static_cast<std::uint32_t>(rows)) != 0;
  }

 private:
  TIFFRGBAImage image_{};
};

/// Rows that are compressed together: reading fewer at a time would decode them again and again.
std::int64_t rows_together(TIFF* file, std::int64_t height) {
  std::uint32_t rows = 0;
  if (TIFFGetFieldDefaulted(
          file, TIFFIsTiled(file) != 0 ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &rows) == 0)
    return height;
  return std::clamp<std::int64_t>(rows, 1, height);
}

/// The columns of whole tiles, at least `width`. Of a tile that it has to clip at the right edge libtiff takes wrong values,
/// in gray of 16 bits and in gray with alpha. `rows` are read at a time.
std::int64_t columns_together(TIFF* file, std::int64_t width, std::int64_t rows) {
  constexpr std::int64_t most = 1 << 27;
  std::uint32_t across = 0;
  if (TIFFIsTiled(file) == 0 || TIFFGetField(file, TIFFTAG_TILEWIDTH, &across) == 0 || across == 0)
    return width;
  const auto whole = (width + across - 1) / across * across;
  return whole <= most / rows ? whole : width;
}

std::int64_t channels_of(const TIFFRGBAImage& image, picture_colour colour) {
  if (colour != picture_colour::as_stored) return colour == picture_colour::colour ? 3 : 1;
  if (image.photometric == PHOTOMETRIC_MINISBLACK || image.photometric == PHOTOMETRIC_MINISWHITE)
    return 1;
  return image.alpha != 0 ? 4 : 3;
}

void put_pixel(std::uint32_t pixel, std::int64_t channels, std::uint8_t* to) {
  const auto blue = static_cast<std::uint8_t>(TIFFGetB(pixel)),
             green = static_cast<std::uint8_t>(TIFFGetG(pixel)),
             red = static_cast<std::uint8_t>(TIFFGetR(pixel));
  if (channels == 1) {
    *to = luma(blue, green, red);
    return;
  }
  to[0] = blue, to[1] = green, to[2] = red;
  if (channels == 4) to[3] = static_cast<std::uint8_t>(TIFFGetA(pixel));
}

}  // namespace

picture decode_tiff(std::span<const std::uint8_t> file, picture_colour colour) {
  tiff_input in{file, 0, {}};
  const auto opened = open_tiff(in);
  rgba_image image(opened.get());
  const bool as_stored = colour == picture_colour::as_stored;
  if (as_stored && image.get().bitspersample == 16)
    throw std::runtime_error(
        "is a TIFF of 16 bits per value; 8 are read, or give force_color or force_gray");
  auto p = empty_picture(channels_of(image.get(), colour), image.get().height, image.get().width);
  const auto together = rows_together(opened.get(), p.height);
  const auto columns = columns_together(opened.get(), p.width, together);
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(together * columns));
  auto* to = p.pixels.data();
  for (std::int64_t y = 0; y < p.height; y += together) {
    const auto some = std::min(together, p.height - y);
    if (!image.read(y, some, columns, rows.data())) damaged_tiff(in);
    for (std::int64_t row = 0; row < some; ++row)
      for (std::int64_t x = 0; x < p.width; ++x, to += p.channels)
        put_pixel(rows[static_cast<std::size_t>(row * columns + x)], p.channels, to);
  }
  // As it is stored too: OpenCV turns TIFFs always.
  return upright(std::move(p), image.get().orientation);
}

}  // namespace poseidon
