// Pictures against OpenCV 4.6: tests/data/pictures has files of every kind, and beside each what
// cv::imread and cv::resize made of it, as PPM and PGM. For swapped32.bmp, whose header puts red first, that is what imread
// makes with IMREAD_UNCHANGED: with IMREAD_COLOR OpenCV 4.6 ignores the header and exchanges red and blue.
#include "data/picture.hpp"

#include "data/image_list.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

using namespace poseidon;
using namespace poseidon::test;

namespace {

const std::filesystem::path pictures = "tests/data/pictures";

picture read(const std::string& name, picture_colour colour) {
  std::vector<std::uint8_t> file;
  read_whole(pictures / name, file);
  return decode_picture(file, colour);
}

/// "" or how far the worst value is off.
std::string difference(const picture& ours, const picture& expected) {
  if (ours.channels != expected.channels || ours.height != expected.height ||
      ours.width != expected.width)
    return "another shape";
  int worst = 0;
  for (std::size_t i = 0; i < ours.pixels.size(); ++i)
    worst = std::max(worst, std::abs(ours.pixels[i] - expected.pixels[i]));
  return worst == 0 ? "" : "off by " + std::to_string(worst);
}

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

TEST_CASE("picture: every kind of file has OpenCV's pixels, in colour and in gray") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(pictures)) {
    const auto name = entry.path().filename().string();
    if (name.find(".expected.") != std::string::npos ||
        name.find(".resized.") != std::string::npos || name.find(".halved.") != std::string::npos)
      continue;
    ++files;
    CAPTURE(name);
    CHECK(difference(read(name, picture_colour::colour),
                     read(name + ".expected.colour.ppm", picture_colour::colour)) == "");
    CHECK(difference(read(name, picture_colour::gray),
                     read(name + ".expected.gray.pgm", picture_colour::gray)) == "");
  }
  CHECK(files == 70);
}

TEST_CASE("picture: as it is stored, gray has one channel, colour three, alpha a fourth") {
  for (const auto& [name, channels] : {std::pair{"gray.jpg", 1}, {"colour420.jpg", 3},
                                       {"inks.jpg", 3},          {"gray.png", 1},
                                       {"colour.png", 3},        {"palette.png", 3},
                                       {"alpha.png", 4},         {"bilevel.png", 1},
                                       {"transparent.png", 4},   {"transparentgray.png", 1},
                                       {"gray.pgm", 1},          {"colour.ppm", 3},
                                       {"gray.bmp", 1},          {"bits8.bmp", 3},
                                       {"bits32.bmp", 3},        {"alpha.bmp", 4},
                                       {"lossy.webp", 3},        {"alpha.webp", 4},
                                       {"bilevel.tif", 1},       {"gray.tif", 1},
                                       {"palette.tif", 3},       {"inks.tif", 3},
                                       {"alpha.tif", 4}})
    CHECK_MESSAGE(read(name, picture_colour::as_stored).channels == channels, name);
  CHECK(complaint([] {
          (void)read("sixteen.png", picture_colour::as_stored);
        }).find("is a PNG of 16 bits per value") == 0);
  CHECK(complaint([] {
          (void)read("sixteen.tif", picture_colour::as_stored);
        }).find("is a TIFF of 16 bits per value") == 0);
}

TEST_CASE("picture: resizing gives OpenCV's bytes, larger, smaller, one side each, and halved") {
  const auto from = read("colour.ppm", picture_colour::colour);
  for (const auto& [height, width] : {std::pair{8, 8}, {26, 34}, {29, 11}, {5, 40}, {1, 1}}) {
    const auto name = std::to_string(height) + "x" + std::to_string(width);
    CHECK_MESSAGE(
        difference(resize(from, height, width),
                   read("colour.ppm.resized." + name + ".ppm", picture_colour::colour)) == "",
        name);
  }
  auto even = empty_picture(3, 12, 16);
  for (std::size_t y = 0; y < 12; ++y)
    std::copy_n(from.pixels.begin() + static_cast<long>(y * 17 * 3), 16 * 3,
                even.pixels.begin() + static_cast<long>(y * 16 * 3));
  CHECK(difference(resize(even, 6, 8), read("colour.ppm.halved.6x8.ppm", picture_colour::colour)) ==
        "");
  CHECK(difference(resize(from, 13, 17), from) == "");
}

TEST_CASE("picture: a photo is turned upright, unless it is taken as it is stored") {
  const auto stored = read("held6.jpg", picture_colour::as_stored);
  const auto upright = read("held6.jpg", picture_colour::colour);
  CHECK(stored.height == upright.width);
  CHECK(stored.width == upright.height);
}

TEST_CASE("picture: planes are channels, blue first") {
  const picture p{3, 1, 2, {1, 2, 3, 4, 5, 6}};
  std::vector<std::uint8_t> planes;
  to_planes(p, planes);
  CHECK(planes == std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("picture: PNG keeps every value, JPEG nearly") {
  const auto colour = read("colour.ppm", picture_colour::colour);
  const auto gray = read("gray.pgm", picture_colour::gray);
  CHECK(difference(decode_picture(encode_png(colour), picture_colour::as_stored), colour) == "");
  CHECK(difference(decode_picture(encode_png(gray), picture_colour::as_stored), gray) == "");
  const auto jpeg = decode_picture(encode_jpeg(gray), picture_colour::as_stored);
  REQUIRE(jpeg.pixels.size() == gray.pixels.size());
  int off = 0;
  for (std::size_t i = 0; i < gray.pixels.size(); ++i)
    off = std::max(off, std::abs(gray.pixels[i] - jpeg.pixels[i]));
  CHECK(off < 40);
  CHECK(decode_picture(encode_jpeg(colour), picture_colour::as_stored).channels == 3);
}

TEST_CASE("picture: what is damaged says what it is and why, at any length that is left of it") {
  const auto refused = [](const std::vector<std::uint8_t>& file) {
    return complaint([&] { (void)decode_picture(file, picture_colour::colour); });
  };
  CHECK(refused({}) == "is empty");
  CHECK(refused(bytes_of("GIF89a...")) ==
        "is none of JPEG, PNG, WebP, TIFF, BMP, PPM, PGM, PBM by its first bytes");
  CHECK(refused(bytes_of("P6 3 x 255\n")) == "is a PPM, PGM or PBM whose header is damaged");
  CHECK(refused(bytes_of("P6 3 2 65536\n")) ==
        "is a PPM, PGM or PBM of values up to 65536; those up to 65535 are read");
  CHECK(refused(bytes_of("P6 3 2 255\nabc")) ==
        "is cut short: it has 3 bytes of pixels, its header says 18");
  CHECK(refused(bytes_of("P5 99999999 99999999 255\n")) ==
        "says it is 99999999 rows of 99999999 pixels; from 1 to 2^27 pixels are read");
  // A BMP that is cut short among its pixels says so as a PPM does.
  for (const auto& [name, text] : {std::pair{"colour420.jpg", "is a damaged JPEG: "},
                                   {"colour.png", "is a damaged PNG: "},
                                   {"lossy.webp", "is a damaged WebP: it is cut short"},
                                   {"alpha.webp", "is a damaged WebP: it is cut short"},
                                   {"colour.tif", "is a "},
                                   {"tiles.tiff", "is a "},
                                   {"jpeg.tif", "is a "},
                                   {"colour.bmp", "is "},
                                   {"runs4.bmp", "is a damaged BMP: "},
                                   {"runs8.bmp", "is a damaged BMP: "}}) {
    std::vector<std::uint8_t> file;
    read_whole(pictures / name, file);
    for (std::size_t n = 18; n + 12 < file.size(); ++n) {
      const std::vector<std::uint8_t> cut(file.begin(), file.begin() + static_cast<long>(n));
      CHECK_MESSAGE(refused(cut).find(text) == 0,
                    name << " of " << n << " bytes: " << refused(cut));
    }
    for (std::size_t n = 0; n < file.size(); ++n) {
      auto flipped = file;
      flipped[n] ^= 0x55;
      (void)refused(flipped);  // or read: what matters is that it comes back
    }
  }
}

namespace {

/// A BMP's two headers, and `rows` bytes of pixels.
std::vector<std::uint8_t> bmp(std::int32_t width, std::int32_t height, int bits, int compression,
                              std::size_t rows) {
  std::vector<std::uint8_t> file(54 + (bits <= 8 ? std::size_t{4} << bits : 0) + rows);
  const auto put = [&file](std::size_t at, std::uint32_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      file[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  file[0] = 'B', file[1] = 'M';
  put(10, static_cast<std::uint32_t>(file.size() - rows), 4);
  put(14, 40, 4);
  put(18, static_cast<std::uint32_t>(width), 4);
  put(22, static_cast<std::uint32_t>(height), 4);
  put(28, static_cast<std::uint32_t>(bits), 2);
  put(30, static_cast<std::uint32_t>(compression), 4);
  return file;
}

}  // namespace

TEST_CASE("picture: a BMP that is not read says which bits and compression it has") {
  const auto refused = [](const std::vector<std::uint8_t>& file) {
    return complaint([&] { (void)decode_picture(file, picture_colour::colour); });
  };
  CHECK(refused(bmp(2, 2, 2, 0, 8)) ==
        "is a BMP of 2 bits per pixel; 1, 4, 8, 16, 24 and 32 are read");
  CHECK(refused(bmp(2, 2, 24, 4, 8)).find("is a BMP of 24 bits per pixel and compression 4; ") ==
        0);
  CHECK(refused(bmp(2, 2, 16, 3, 12))
            .find("is a BMP whose pixels have other bits than 5-5-5, 5-6-5 or 8-8-8") == 0);
  CHECK(refused(bmp(3, 2, 24, 0, 23)) ==
        "is cut short: it has 23 bytes of pixels, its header says 24");
  CHECK(refused(bmp(0, 2, 24, 0, 24)).find("says it is 2 rows of 0 pixels") == 0);
  CHECK(refused(bmp(4, 2, 8, 1, 2)) == "is a damaged BMP: its runs are cut short");
  auto far = bmp(4, 2, 8, 1, 4);
  far[far.size() - 4] = 5;  // 5 pixels in a row of 4
  CHECK(refused(far) == "is a damaged BMP: a run leaves the picture");
}

TEST_CASE(
    "picture: a small file that says it is a huge picture is refused before memory is asked for") {
  const auto refused = [](const std::vector<std::uint8_t>& file) {
    return complaint([&] { (void)decode_picture(file, picture_colour::colour); });
  };
  const auto read_only = [](const char* name) {
    std::vector<std::uint8_t> file;
    read_whole(pictures / name, file);
    return file;
  };
  CHECK(refused(bmp(0x7fffffff, 0x7fffffff, 24, 0, 8))
            .find("says it is 2147483647 rows of 2147483647 pixels") == 0);
  CHECK(refused(bmp(0x7fffffff, -0x7fffffff - 1, 8, 1, 8)).find("says it is 2147483648 rows") == 0);
  CHECK(refused(bmp(1 << 13, 1 << 13, 24, 0, 8)) ==
        "is cut short: it has 8 bytes of pixels, its header says 201326592");
  CHECK(refused(bytes_of("P6 8192 8192 255\nabc")) ==
        "is cut short: it has 3 bytes of pixels, its header says 201326592");
  // VP8L: a byte 2f, then 14 bits of the width - 1, and of the height - 1.
  auto webp = read_only("lossless.webp");
  const auto at = std::find(webp.begin(), webp.end(), 0x2f) - webp.begin();
  for (const long i : {1, 2, 3}) webp[static_cast<std::size_t>(at + i)] = 0xff;
  webp[static_cast<std::size_t>(at + 4)] |= 0x0f;
  CHECK(refused(webp) == "says it is 16384 rows of 16384 pixels; from 1 to 2^27 pixels are read");
  auto tiff = read_only("colour.tif");
  const auto directory = static_cast<std::size_t>(tiff[4] | tiff[5] << 8);
  for (std::size_t entry = directory + 2; entry < directory + 2 + 12 * 2; entry += 12) {
    REQUIRE((tiff[entry] == 0 || tiff[entry] == 1));  // ImageWidth, ImageLength: 16 bits
    tiff[entry + 8] = tiff[entry + 9] = 0xff;
  }
  CHECK(refused(tiff).find("says it is 65535 rows of 65535 pixels") == 0);
}
