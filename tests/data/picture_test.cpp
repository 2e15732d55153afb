// Pictures against OpenCV 4.6: tests/data/pictures has files of every kind, and beside each what
// cv::imread and cv::resize made of it, as PPM and PGM.
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
  CHECK(files == 19);
}

TEST_CASE("picture: as it is stored, gray has one channel, colour three, alpha a fourth") {
  for (const auto& [name, channels] : {std::pair{"gray.jpg", 1},
                                       {"colour420.jpg", 3},
                                       {"inks.jpg", 3},
                                       {"gray.png", 1},
                                       {"colour.png", 3},
                                       {"palette.png", 3},
                                       {"alpha.png", 4},
                                       {"bilevel.png", 1},
                                       {"gray.pgm", 1},
                                       {"colour.ppm", 3}})
    CHECK_MESSAGE(read(name, picture_colour::as_stored).channels == channels, name);
  CHECK(complaint([] {
          (void)read("sixteen.png", picture_colour::as_stored);
        }).find("is a PNG of 16 bits per value") == 0);
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
  CHECK(refused(bytes_of("GIF89a...")) == "is none of JPEG, PNG, PPM, PGM by its first bytes");
  CHECK(refused(bytes_of("P6 3 x 255\n")) == "is a PPM or PGM whose header is damaged");
  CHECK(refused(bytes_of("P6 3 2 65535\n")) ==
        "is a PPM or PGM of values up to 65535; those up to 255 are read");
  CHECK(refused(bytes_of("P6 3 2 255\nabc")) ==
        "is cut short: it has 3 bytes of pixels, its header says 18");
  CHECK(refused(bytes_of("P5 99999999 99999999 255\n")) ==
        "says it is 99999999 rows of 99999999 pixels; from 1 to 2^27 pixels are read");
  for (const auto& [name, text] :
       {std::pair{"colour420.jpg", "is a damaged JPEG: "}, {"colour.png", "is a damaged PNG: "}}) {
    std::vector<std::uint8_t> file;
    read_whole(pictures / name, file);
    for (std::size_t n = 8; n + 12 < file.size(); ++n) {
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
