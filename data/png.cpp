// PNG through libpng. Its errors leave by a C++ exception from the error callback, which libpng
// allows; everything that must be freed belongs to objects outside.
#include "data/exif.hpp"
#include "data/picture.hpp"

#include <cstring>
#include <png.h>
#include <stdexcept>
#include <utility>

namespace poseidon {
namespace {

struct unread {
  std::span<const std::uint8_t> bytes;
};

[[noreturn]] void throw_text(png_structp, png_const_charp text) {
  throw std::runtime_error("is a damaged PNG: " + std::string(text));
}
void ignore(png_structp, png_const_charp) {}

void take(png_structp png, png_bytep to, std::size_t bytes) {
  auto& from = *static_cast<unread*>(png_get_io_ptr(png));
  if (bytes > from.bytes.size()) png_error(png, "it is cut short");
  std::memcpy(to, from.bytes.data(), bytes);
  from.bytes = from.bytes.subspan(bytes);
}

void put(png_structp png, png_bytep from, std::size_t bytes) {
  auto& to = *static_cast<std::vector<std::uint8_t>*>(png_get_io_ptr(png));
  to.insert(to.end(), from, from + bytes);
}

struct reader {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, throw_text, ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  reader() {
    if (info == nullptr) throw std::runtime_error("cannot start libpng");
  }
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;
  ~reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

struct writer {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, throw_text, ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  writer() {
    if (info == nullptr) throw std::runtime_error("cannot start libpng");
  }
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;
  ~writer() { png_destroy_write_struct(&png, &info); }
};

/// With alpha also where a list of alphas, or one colour that is transparent, stands for it. In gray OpenCV ignores such a
/// colour.
std::int64_t stored_channels(png_structp png, png_infop info, int type) {
  const bool stores_colour = (type & PNG_COLOR_MASK_COLOR) != 0;
  const bool has_transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  if ((type & PNG_COLOR_MASK_ALPHA) != 0 || (stores_colour && has_transparent)) return 4;
  return stores_colour ? 3 : 1;
}

/// Of a chunk eXIf before or behind the pixels, which have been read.
int orientation_of(png_structp png, png_infop info) {
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(png, info, &size, &exif) == 0 || exif == nullptr) return 1;
  return poseidon::orientation_of({exif, size});
}

}  // namespace

picture decode_png(std::span<const std::uint8_t> file, picture_colour colour) {
  unread from{file};
  const reader r;
  png_set_read_fn(r.png, &from, take);
  png_read_info(r.png, r.info);
  const int type = png_get_color_type(r.png, r.info), bits = png_get_bit_depth(r.png, r.info);
  const bool as_stored = colour == picture_colour::as_stored;
  if (as_stored && bits == 16)
    throw std::runtime_error(
        "is a PNG of 16 bits per value; 8 are read, or give force_color or "
        "force_gray");
  const auto channels = as_stored                          ? stored_channels(r.png, r.info, type)
                        : colour == picture_colour::colour ? 3
                                                           : 1;
  auto p = empty_picture(channels, png_get_image_height(r.png, r.info),
                         png_get_image_width(r.png, r.info));
  if (bits == 16) png_set_strip_16(r.png);
  if (channels == 4)
    png_set_tRNS_to_alpha(r.png);
  else
    png_set_strip_alpha(r.png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r.png);
  const bool stores_colour = (type & PNG_COLOR_MASK_COLOR) != 0;
  if (!stores_colour && bits < 8) png_set_expand_gray_1_2_4_to_8(r.png);
  if (stores_colour && channels > 1)
    png_set_bgr(r.png);
  else if (channels > 1)
    png_set_gray_to_rgb(r.png);
  else if (stores_colour)
    png_set_rgb_to_gray(r.png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  const int passes = png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  const auto row_bytes = static_cast<std::size_t>(p.width * p.channels);
  if (png_get_rowbytes(r.png, r.info) != row_bytes)
    throw std::runtime_error("is a PNG of a kind that is not read");
  for (int pass = 0; pass < passes; ++pass)
    for (std::int64_t y = 0; y < p.height; ++y)
      png_read_row(r.png, p.pixels.data() + static_cast<std::size_t>(y) * row_bytes, nullptr);
  png_read_end(r.png, r.info);
  return as_stored ? p : upright(std::move(p), orientation_of(r.png, r.info));
}

std::vector<std::uint8_t> encode_png(const picture& p) {
  std::vector<std::uint8_t> bytes;
  const writer w;
  png_set_write_fn(w.png, &bytes, put, nullptr);
  png_set_IHDR(w.png, w.info, static_cast<png_uint_32>(p.width), static_cast<png_uint_32>(p.height),
               8, p.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  if (p.channels == 3) png_set_bgr(w.png);
  const auto row_bytes = static_cast<std::size_t>(p.width * p.channels);
  for (std::int64_t y = 0; y < p.height; ++y)
    png_write_row(w.png, p.pixels.data() + static_cast<std::size_t>(y) * row_bytes);
  png_write_end(w.png, nullptr);
  return bytes;
}

}  // namespace poseidon
