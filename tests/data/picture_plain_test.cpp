// PPM, PGM, PBM and BMP in all their variants. The values expected are those of OpenCV 4.6's cv::imread of the same bytes.
#include "data/picture.hpp"
#include "tests/data/made_files.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace poseidon;
using namespace poseidon::test;

namespace {

using values = std::vector<std::uint8_t>;

/// `head`, and behind it bytes.
values file_of(const std::string& head, std::initializer_list<int> tail = {}) {
  values file(head.begin(), head.end());
  for (const int byte : tail) file.push_back(static_cast<std::uint8_t>(byte));
  return file;
}

values read(const values& file, picture_colour colour) {
  return decode_picture(file, colour).pixels;
}

std::string refused(const values& file, picture_colour colour = picture_colour::colour) {
  return complaint([&] { (void)decode_picture(file, colour); });
}

}  // namespace

TEST_CASE(
    "pnm: numbers in text are stretched to 255, and those above the largest are the largest") {
  const auto gray = [](const std::string& text) {
    return read(file_of(text), picture_colour::gray);
  };
  CHECK(gray("P2\n3 2\n255\n0 17 34\n255 7 8\n") == values{0, 17, 34, 255, 7, 8});
  CHECK(gray("P2 3 2 100 0 7 14 100 99 50") == values{0, 17, 35, 255, 252, 127});
  CHECK(gray("P2 3 1 100 17 101 99999999999999999999") == values{43, 255, 255});
  CHECK(gray("P2 3 1 1 0 1 1") == values{0, 255, 255});
  CHECK(gray("P2 4 1 1000 0 255 256 1000") == values{0, 0, 1, 3});
  CHECK(gray("P2 # a comment\r2 1 #another\n255 #third\n 1 # fourth\n2") == values{1, 2});
  const auto ppm = file_of("P3 2 1 31\n0 17 3 20 6 31\n");
  CHECK(read(ppm, picture_colour::colour) == values{24, 139, 0, 255, 49, 164});
  CHECK(read(ppm, picture_colour::as_stored) == values{24, 139, 0, 255, 49, 164});
  CHECK(read(file_of("P3 1 1 65535 255 256 65535"), picture_colour::colour) == values{255, 1, 0});
}

TEST_CASE("pnm: bytes are taken as they are, and of 16 bits the upper 8") {
  CHECK(read(file_of("P5 4 1 100\n", {0, 7, 100, 200}), picture_colour::gray) ==
        values{0, 7, 100, 200});
  CHECK(read(file_of("P6 1 1 1\n", {0, 1, 1}), picture_colour::colour) == values{1, 1, 0});
  const auto wide = file_of("P5 2 1 65535\n", {1, 2, 250, 3});
  CHECK(read(wide, picture_colour::gray) == values{1, 250});
  CHECK(read(wide, picture_colour::colour) == values{1, 1, 1, 250, 250, 250});
  CHECK(read(file_of("P6 1 1 4095\n", {1, 2, 3, 4, 5, 6}), picture_colour::colour) ==
        values{5, 3, 1});
  CHECK(refused(wide, picture_colour::as_stored) ==
        "is a PPM, PGM or PBM of 16 bits per value; 8 are read, or give force_color or force_gray");
}

TEST_CASE("pnm: in a PBM a 1 is black; in text the digits need no space between them") {
  const values expected{255, 0, 255, 0, 0, 255, 0, 0, 255, 0};
  for (const auto& file :
       {file_of("P1\n# c\n5 2\n0 1 0 1 1\n01101\n"), file_of("P1 5 2 0101101101"),
        file_of("P4\n5 2\n", {0b01011000, 0b01101111})}) {
    CHECK(read(file, picture_colour::gray) == expected);
    CHECK(read(file, picture_colour::as_stored) == expected);
    CHECK(read(file, picture_colour::colour).size() == 30);
  }
  CHECK(read(file_of("P4 9 2 ", {0x5a, 0x80, 0xff, 0}), picture_colour::gray) ==
        values{255, 0, 255, 0, 0, 255, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255});
  for (const auto ending : {".pbm", ".PNM", ".pgm"}) CHECK(is_picture_ending(ending));
}

TEST_CASE("pnm: what is missing or no number is said, with both counts") {
  CHECK(refused(file_of("P2 5 3 255\n1 2 3 4 5 6 7 8 9 10 11 12 13 14")) ==
        "is cut short: it has 14 values of pixels, its header says 15");
  CHECK(refused(file_of("P2 3 1 255\n1 -2 3")) ==
        "is a damaged PPM, PGM or PBM: value 2 of its pixels is no number");
  CHECK(refused(file_of("P4 9 2\n", {1, 2, 3})) ==
        "is cut short: it has 3 bytes of pixels, its header says 4");
  CHECK(refused(file_of("P6 2 1 300\n", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) ==
        "is cut short: it has 11 bytes of pixels, its header says 12");
  CHECK(refused(file_of("P3 8192 8192 255\nabc")) ==
        "is cut short: it has 3 bytes of pixels, its header says 201326592");
  CHECK(refused(file_of("P5 2 1 0\n", {1, 2})) ==
        "is a PPM, PGM or PBM of values up to 0; those up to 65535 are read");
  CHECK(refused(file_of("P1 99999999999999999999 1\n")).find("says it is 1 rows of 1073741824") ==
        0);
  CHECK(refused(file_of("P65 1 255\n", {1})).find("is none of JPEG, ") == 0);
}

namespace {

/// 5x3 pixels in runs. Colour i of the palette is i, i + 50, i + 100.
values run_bmp(int bits, std::initializer_list<int> runs) {
  values file(54 + (std::size_t{4} << bits));
  const auto put = [&file](std::size_t at, std::size_t value) {
    for (std::size_t i = 0; i < 4; ++i) file[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  file[0] = 'B', file[1] = 'M';
  put(10, file.size());
  put(14, 40);
  put(18, 5);
  put(22, 3);
  put(26, 1 | static_cast<std::size_t>(bits) << 16);
  put(30, bits == 8 ? 1 : 2);
  for (std::size_t i = 0; i < std::size_t{1} << bits; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      file[54 + 4 * i + c] = static_cast<std::uint8_t>(i + 50 * c);
  for (const int byte : runs) file.push_back(static_cast<std::uint8_t>(byte));
  return file;
}

/// The palette's number of each pixel, row by row from the top.
values places(const picture& p) {
  values blue;
  for (std::size_t i = 0; i < p.pixels.size(); i += 3) blue.push_back(p.pixels[i]);
  return blue;
}

constexpr const char* lacks_end =
    "is a BMP whose runs lack the code for their end, which may have been cut short; none of its "
    "rows is missing, so it is read";

void check_runs(const values& file, const values& expected, const std::string& warning) {
  picture p;
  CHECK(complaint([&] { p = decode_picture(file, picture_colour::colour); }) == "");
  CHECK(places(p) == expected);
  CHECK(p.warning == warning);
}

}  // namespace

TEST_CASE(
    "bmp: runs without the code for their end are read with a warning, if no row is missing") {
  const values eight{7, 8, 9, 10, 11, 2, 2, 3, 3, 3, 1, 1, 1, 1, 1};
  check_runs(run_bmp(8, {5, 1, 0, 0, 2, 2, 3, 3, 0, 0, 0, 5, 7, 8, 9, 10, 11, 0, 0, 0, 0, 1}),
             eight, "");
  check_runs(run_bmp(8, {5, 1, 0, 0, 2, 2, 3, 3, 0, 0, 0, 5, 7, 8, 9, 10, 11, 0, 0, 0}), eight,
             lacks_end);
  check_runs(run_bmp(8, {5, 1, 0, 0, 2, 2, 3, 3, 0, 0, 0, 5, 7, 8, 9, 10, 11, 0}), eight,
             lacks_end);
  check_runs(run_bmp(8, {5, 1, 0, 0, 2, 2, 3, 3, 0, 0, 0, 5, 7, 8, 9, 10, 11, 0, 0, 0, 3, 4}),
             eight, lacks_end);
  const values four{7, 8, 9, 10, 11, 3, 4, 5, 6, 5, 1, 2, 1, 2, 1};
  check_runs(run_bmp(4, {5, 0x12, 0, 0, 2, 0x34, 3, 0x56, 0, 0, 0, 5, 0x78, 0x9a, 0xb0, 0, 0, 1}),
             four, "");
  check_runs(run_bmp(4, {5, 0x12, 0, 0, 2, 0x34, 3, 0x56, 0, 0, 0, 5, 0x78, 0x9a, 0xb0, 0, 0, 0}),
             four, lacks_end);
  for (const auto& cut :
       {run_bmp(8, {5, 1, 0, 0, 2, 2, 3, 3, 0, 0}), run_bmp(8, {5, 1, 0, 0, 5, 1}),
        run_bmp(8, {5, 1, 0, 0, 5, 1, 0, 0, 4, 1}),
        run_bmp(4, {5, 0x12, 0, 0, 2, 0x34, 3, 0x56, 0, 0}), run_bmp(8, {})})
    CHECK(refused(cut) == "is a damaged BMP: its runs are cut short");
}

TEST_CASE("bmp: a run of 8 bits that fills its row needs no code for the end of the row") {
  const values expected{6, 6, 6, 6, 6, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4};
  check_runs(run_bmp(8, {5, 4, 5, 5, 5, 6, 0, 1}), expected, "");
  check_runs(run_bmp(8, {5, 4, 0, 0, 5, 5, 5, 6, 0, 0, 0, 1}), expected, "");
  check_runs(run_bmp(8, {5, 4, 5, 5, 5, 6}), expected, lacks_end);
  for (const auto& far : {run_bmp(8, {7, 4, 8, 5, 0, 1}), run_bmp(8, {20, 4, 0, 1}),
                          run_bmp(4, {5, 0x12, 5, 0x34, 5, 0x56, 0, 1})})
    CHECK(refused(far) == "is a damaged BMP: a run leaves the picture");
}

TEST_CASE("bmp: the second header may be one of OS/2 2 whose last fields are left out") {
  auto file = run_bmp(8, {5, 4, 5, 5, 5, 6, 0, 1});
  file[14] = 48;
  file[10] += 8;
  file.insert(file.begin() + 54, 8, 0);
  CHECK(places(decode_picture(file, picture_colour::colour)) ==
        values{6, 6, 6, 6, 6, 5, 5, 5, 5, 5, 4, 4, 4, 4, 4});
}
