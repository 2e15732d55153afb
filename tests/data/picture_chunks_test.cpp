// PNGs with an orientation or a transparent colour, and TIFFs in tiles of every size.
#include "data/picture.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <tiffio.h>
#include <zlib.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {

using file_bytes = std::vector<std::uint8_t>;

picture made_picture(std::int64_t channels, std::int64_t height, std::int64_t width) {
  auto p = empty_picture(channels, height, width);
  for (std::size_t i = 0; i < p.pixels.size(); ++i) p.pixels[i] = pixel(3, i);
  return p;
}

void put_big_endian(std::uint32_t value, file_bytes& to) {
  for (const int shift : {24, 16, 8, 0}) to.push_back(static_cast<std::uint8_t>(value >> shift));
}

/// In front of the chunk `before`.
file_bytes with_chunk(file_bytes png, const std::string& name, const file_bytes& content,
                      const std::string& before) {
  file_bytes chunk;
  put_big_endian(static_cast<std::uint32_t>(content.size()), chunk);
  chunk.insert(chunk.end(), name.begin(), name.end());
  chunk.insert(chunk.end(), content.begin(), content.end());
  put_big_endian(static_cast<std::uint32_t>(
                     crc32(0, chunk.data() + 4, static_cast<unsigned>(chunk.size() - 4))),
                 chunk);
  const auto at = std::search(png.begin(), png.end(), before.begin(), before.end());
  REQUIRE(at != png.end());
  png.insert(at - 4, chunk.begin(), chunk.end());
  return png;
}

file_bytes exif_of(int orientation, bool big_endian) {
  const auto o = static_cast<std::uint8_t>(orientation);
  if (big_endian)
    return {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, o, 0, 0, 0, 0, 0, 0};
  return {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, o, 0, 0, 0, 0, 0, 0, 0};
}

/// Where the pixel of a stored row and column belongs, from the table of CIPA DC-008: which side of the picture the first
/// row and the first column are.
std::array<std::int64_t, 2> upright_place(int orientation, std::int64_t row, std::int64_t column,
                                          std::int64_t rows, std::int64_t columns) {
  const auto last_row = rows - 1 - row, last_column = columns - 1 - column;
  switch (orientation) {
    case 2:  // top, right
      return {row, last_column};
    case 3:  // bottom, right
      return {last_row, last_column};
    case 4:  // bottom, left
      return {last_row, column};
    case 5:  // left, top
      return {column, row};
    case 6:  // right, top
      return {column, last_row};
    case 7:  // right, bottom
      return {last_column, last_row};
    case 8:  // left, bottom
      return {last_column, row};
    default:
      return {row, column};
  }
}

picture turned(const picture& from, int orientation) {
  const bool exchanged = orientation >= 5 && orientation <= 8;
  auto to = empty_picture(from.channels, exchanged ? from.width : from.height,
                          exchanged ? from.height : from.width);
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < from.width; ++x) {
      const auto [row, column] = upright_place(orientation, y, x, from.height, from.width);
      std::copy_n(from.pixels.begin() + (y * from.width + x) * from.channels, from.channels,
                  to.pixels.begin() + (row * to.width + column) * from.channels);
    }
  return to;
}

void check_same(const picture& ours, const picture& expected) {
  CHECK(ours.height == expected.height);
  CHECK(ours.width == expected.width);
  CHECK(ours.channels == expected.channels);
  CHECK(ours.pixels == expected.pixels);
}

}  // namespace

TEST_CASE("png: EXIF turns it upright, wherever its chunk is, unless it is taken as it is stored") {
  for (const std::int64_t channels : {1, 3}) {
    const auto stored = made_picture(channels, 3, 5);
    const auto png = encode_png(stored);
    for (int orientation = 0; orientation <= 9; ++orientation)
      for (const bool big_endian : {false, true})
        for (const auto* before : {"IDAT", "IEND"}) {
          CAPTURE(orientation);
          CAPTURE(before);
          const auto file = with_chunk(png, "eXIf", exif_of(orientation, big_endian), before);
          const auto colour = channels == 3 ? picture_colour::colour : picture_colour::gray;
          check_same(decode_picture(file, colour), turned(stored, orientation));
          check_same(decode_picture(file, picture_colour::as_stored), stored);
        }
  }
}

TEST_CASE("png: EXIF that is damaged or stands twice does not turn it again") {
  const auto stored = made_picture(3, 3, 5);
  const auto png = encode_png(stored);
  auto cut = exif_of(6, false);
  cut.resize(15);
  check_same(decode_picture(with_chunk(png, "eXIf", cut, "IDAT"), picture_colour::colour), stored);
  check_same(decode_picture(with_chunk(png, "eXIf", {}, "IDAT"), picture_colour::colour), stored);
  auto damaged = with_chunk(png, "eXIf", exif_of(6, false), "IDAT");
  const std::string name = "eXIf";
  auto at = std::search(damaged.begin(), damaged.end(), name.begin(), name.end());
  at[4 + 20] ^= 1;  // its checksum is wrong now
  check_same(decode_picture(damaged, picture_colour::colour), stored);
  const auto twice = with_chunk(with_chunk(png, "eXIf", exif_of(3, false), "IDAT"), "eXIf",
                                exif_of(6, false), "IEND");
  check_same(decode_picture(twice, picture_colour::colour), turned(stored, 3));
}

TEST_CASE("png: a transparent colour is a fourth channel as it is stored, and else nothing") {
  const auto colour = made_picture(3, 3, 5);
  const auto* key = colour.pixels.data() + 3 * 4;  // of the fifth pixel; the file has red first
  const auto file =
      with_chunk(encode_png(colour), "tRNS", {0, key[2], 0, key[1], 0, key[0]}, "IDAT");
  check_same(decode_picture(file, picture_colour::colour), colour);
  const auto stored = decode_picture(file, picture_colour::as_stored);
  REQUIRE(stored.channels == 4);
  for (std::size_t i = 0; i < 15; ++i) {
    const auto* from = colour.pixels.data() + 3 * i;
    CHECK(std::equal(from, from + 3, stored.pixels.data() + 4 * i));
    CHECK(stored.pixels[4 * i + 3] == (std::equal(from, from + 3, key) ? 0 : 255));
  }
  const auto gray = made_picture(1, 3, 5);
  const auto gray_file = with_chunk(encode_png(gray), "tRNS", {0, gray.pixels[4]}, "IDAT");
  for (const auto how : {picture_colour::gray, picture_colour::as_stored})
    check_same(decode_picture(gray_file, how), gray);
}

namespace {

struct tiff_tiles {
  std::uint32_t across, down;
  std::uint16_t channels, bits, planar, compression;
};

/// Writes the picture to `path`, its last channel first: red, green, blue, or gray and an alpha. Of 16 bits per value both
/// bytes are the picture's.
void write_tiles(const std::filesystem::path& path, const picture& p, const tiff_tiles& t) {
  auto* to = TIFFOpen(path.c_str(), "w");
  REQUIRE(to != nullptr);
  TIFFSetField(to, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(p.width));
  TIFFSetField(to, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(p.height));
  TIFFSetField(to, TIFFTAG_SAMPLESPERPIXEL, t.channels);
  TIFFSetField(to, TIFFTAG_BITSPERSAMPLE, t.bits);
  TIFFSetField(to, TIFFTAG_PHOTOMETRIC, t.channels < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
  const std::uint16_t alpha = EXTRASAMPLE_UNASSALPHA;
  if (t.channels == 2) TIFFSetField(to, TIFFTAG_EXTRASAMPLES, 1, &alpha);
  TIFFSetField(to, TIFFTAG_PLANARCONFIG, t.planar);
  TIFFSetField(to, TIFFTAG_COMPRESSION, t.compression);
  TIFFSetField(to, TIFFTAG_TILEWIDTH, t.across);
  TIFFSetField(to, TIFFTAG_TILELENGTH, t.down);
  const bool apart = t.planar == PLANARCONFIG_SEPARATE;
  const std::uint32_t planes = apart ? t.channels : 1, together = apart ? 1 : t.channels;
  const std::uint32_t value_bytes = t.bits / 8u;
  for (std::uint32_t plane = 0; plane < planes; ++plane)
    for (std::uint32_t top = 0; top < p.height; top += t.down)
      for (std::uint32_t left = 0; left < p.width; left += t.across) {
        file_bytes tile(std::size_t{t.across} * t.down * together * value_bytes);
        auto at = tile.begin();
        for (std::uint32_t y = top; y < top + t.down; ++y)
          for (std::uint32_t x = left; x < left + t.across; ++x)
            for (std::uint32_t c = 0; c < together; ++c, at += value_bytes) {
              if (y >= p.height || x >= p.width) continue;
              const auto channel = t.channels - 1 - (apart ? plane : c);
              const auto i = (y * p.width + x) * t.channels + channel;
              std::fill_n(at, value_bytes, p.pixels[static_cast<std::size_t>(i)]);
            }
        REQUIRE(TIFFWriteTile(to, tile.data(), left, top, 0, static_cast<std::uint16_t>(plane)) >
                0);
      }
  TIFFClose(to);
}

}  // namespace

TEST_CASE("tiff: tiles of every size are read, compressed or not") {
  temporary_folder folder;
  const auto path = folder / "tiles.tif";
  for (const std::uint32_t across : {16u, 32u, 48u, 64u})
    for (const std::uint32_t down : {16u, 32u, 80u})
      for (const std::uint16_t channels : {1, 2, 3})
        for (const std::uint16_t bits : {8, 16})
          for (const std::uint16_t planar : {PLANARCONFIG_CONTIG, PLANARCONFIG_SEPARATE})
            for (const std::uint16_t compression : {COMPRESSION_NONE, COMPRESSION_LZW}) {
              // In planes of their own libtiff multiplies gray with alpha, as it does with colours.
              if (channels == 2 && planar == PLANARCONFIG_SEPARATE) continue;
              CAPTURE(across);
              CAPTURE(down);
              CAPTURE(channels);
              CAPTURE(bits);
              CAPTURE(planar);
              CAPTURE(compression);
              const auto written = made_picture(channels, 35, 37);
              write_tiles(path, written, {across, down, channels, bits, planar, compression});
              auto expected = written.pixels;
              if (channels == 2)  // the gray of each pixel
                for (std::size_t i = 0; i < expected.size() / 2; ++i)
                  expected[i] = expected[2 * i + 1];
              if (channels == 2) expected.resize(expected.size() / 2);
              file_bytes file;
              const auto text = read_file(path);
              file.assign(text.begin(), text.end());
              picture read;
              CHECK(complaint([&] {
                      read = decode_picture(
                          file, channels == 3 ? picture_colour::colour : picture_colour::gray);
                    }) == "");
              CHECK(read.pixels == expected);
            }
}

TEST_CASE("tiff: one that is held otherwise is turned also as it is stored, as OpenCV does") {
  for (const auto* name : {"held2.tif", "held5.tif", "held6.tif", "held8.tif"}) {
    const auto text = read_file(std::filesystem::path("tests/data/pictures") / name);
    const file_bytes file(text.begin(), text.end());
    check_same(decode_picture(file, picture_colour::as_stored),
               decode_picture(file, picture_colour::colour));
  }
}
